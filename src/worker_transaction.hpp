// A background worker's transaction, and what is left of it when it fails.
#pragma once

#include "pg.hpp"

namespace pg_doorbell {

// Runs `work` in a transaction of its own. Returns what it failed with, in the caller's memory, or null. A failure goes
// to the log unless it is expected.
template <typename Work>
ErrorData *try_transaction(const Work &work, bool expected = false)
{
	ErrorData *volatile failure = nullptr;
	MemoryContext memory = CurrentMemoryContext;
	PG_TRY();
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		work();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(memory);
		HOLD_INTERRUPTS();
		failure = CopyErrorData();
		if (!expected)
			EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(memory);
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(memory);
	return failure;
}

} // namespace pg_doorbell
