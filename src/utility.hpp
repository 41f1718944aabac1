// Commands that the ringer has to know of.
//
// 1. COMMIT PREPARED and ROLLBACK PREPARED: the rings of a prepared transaction were forgotten when it was prepared.
// They
//    are read back from doorbell.event by its transaction id, and belong to the transaction of the command.
// 2. DROP DATABASE, and what else wants a database without sessions (CREATE DATABASE … TEMPLATE, RENAME, SET
//    TABLESPACE): the database's ringer is sent away first.
#pragma once

namespace pg_doorbell {

void watch_utility_commands(); // while the library is preloaded

} // namespace pg_doorbell
