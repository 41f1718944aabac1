// What happens when the server loads the library: settings, callbacks.
#include "pg.hpp"
#include "ring.hpp"
#include "tables.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

void _PG_init(void)
{
	pg_doorbell::define_ring_settings();
	MarkGUCPrefixReserved("doorbell");
	pg_doorbell::watch_tables();
}
