// The ringer: the background worker of one database that rings after the commit.
//
// Why: a NOTIFY inside the application's transaction holds one lock of the whole instance until that commit is on
// disk, so commits queue up one by one. The ringer's own transactions write nothing that must survive, so they do not
// wait for the disk, and one of them rings for all that committed meanwhile.
//
//  1. It takes all that waits in the table (ring_table.hpp), sends it in one transaction, and looks again. While it is
//     busy, rings merge in the table.
//  2. Nothing waits: it sleeps, and the next post wakes it. The first ring after silence is not delayed.
//  3. Under load, from about 2,000 appends a second on, it pauses for a moment after each batch, so that commits do
//     not wake it one by one; and the longer the more a batch costs (each listening session makes it dearer), at most
//     doorbell.ring_linger. So many appends and many listeners slow the rings down, not the appends.
//  4. A batch that fails (the NOTIFY queue is full) becomes a "*" and is tried again every second. The first failure
//     goes to the log; doorbell.stats shows the last one.
//  5. When nothing waits, or in the pause after a batch, it applies the rules of retention (keeper.hpp).
//  6. It ends when it has been idle for doorbell.ringer_idle_timeout and there are no such rules, when told to by
//  SIGTERM
//     (after ringing what waits), or at once when its database is to be dropped, renamed, moved or copied. The next
//     append starts another.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

void define_ringer_settings();
bool ringer_is_on();		 // doorbell.ringer
bool start_ringer(int slot); // for this database; false when there is no place for another background worker

} // namespace pg_doorbell
