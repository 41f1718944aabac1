// What happens when the server loads the library: settings, callbacks.
#include "pg.hpp"
#include "ring.hpp"
#include "ring_table.hpp"
#include "ringer.hpp"
#include "stream_lock.hpp"
#include "tables.hpp"
#include "tail.hpp"
#include "utility.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

void _PG_init(void)
{
	pg_doorbell::define_ring_settings();
	if (process_shared_preload_libraries_in_progress) {
		pg_doorbell::define_ring_table_settings();
		pg_doorbell::define_ringer_settings();
		pg_doorbell::request_stream_locks();
		pg_doorbell::request_tails();
		pg_doorbell::watch_utility_commands();
	}
	MarkGUCPrefixReserved("doorbell");
	pg_doorbell::watch_tables();
}
