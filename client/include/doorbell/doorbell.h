/* libdoorbell from C, and so from every language that can call C: follow streams, write Server-Sent Events.
 *
 * 1. doorbell_connect() makes a subscriber, doorbell_subscribe() adds streams to it. It connects by itself, again and
 *    again if it must; see subscriber.hpp for what it promises.
 * 2. doorbell_poll() works until something has come or the time is over; doorbell_next() takes it, one notice at a
 *    time. What is not taken yet is bounded: while it waits, no more is read from the database.
 * 3. From a loop of your own, wait until one of doorbell_descriptors() is ready or doorbell_timeout() has passed, then
 *    call doorbell_poll(…, 0). Ask for both again after every call: they change.
 * 4. To go on later, in this program or another, keep the `cursor` of the last notice that you are done with.
 *
 * Errors: functions that can fail return -1 (or NULL); doorbell_error() then says why, doorbell_sqlstate() has the
 * server's code. A broken connection is no error, it is a change of state. To run out of memory is -1, too.
 * Threading: one thread at a time for each subscriber, but for doorbell_wake(). A forked child may only close its copy.
 * Text is UTF-8 and ends with NUL. */
#ifndef DOORBELL_H
#define DOORBELL_H

#include <doorbell/export.hpp>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct doorbell_subscriber doorbell_subscriber;

enum doorbell_kind {
	DOORBELL_EVENT,
	DOORBELL_GAP,  /* events up to `seq` were trimmed away before they could be delivered */
	DOORBELL_RESET /* the start was of another history; everything behind `seq` follows */
};

enum doorbell_state {
	DOORBELL_DOWN,	   /* no connection: nothing arrives */
	DOORBELL_SWEEPING, /* rings are not heard: events arrive by sweep */
	DOORBELL_LIVE
};

typedef struct doorbell_notice {
	enum doorbell_kind kind;
	const char *stream;
	int64_t seq;
	const char *cursor;	 /* for doorbell_subscribe(): the place behind this notice */
	const char *type;	 /* of an event; else NULL, as what follows */
	const char *payload; /* JSON text without line ends */
	int64_t appended_at; /* microseconds since 1970-01-01 00:00:00 UTC */
} doorbell_notice;

typedef struct doorbell_descriptor {
	int fd;
	short events; /* POLLIN, POLLOUT as for poll(2) */
} doorbell_descriptor;

DOORBELL_API const char *doorbell_version(void);

/* `dsn`: a libpq connection string or URI; what it leaves out comes from the PG* variables. Does not wait. */
DOORBELL_API doorbell_subscriber *doorbell_connect(const char *dsn);
DOORBELL_API void doorbell_close(doorbell_subscriber *subscriber); /* at any time; NULL does nothing */

/* `start`: "now" or NULL, a seq ("0": the beginning), or a cursor. The same stream again: it is moved there. */
DOORBELL_API int doorbell_subscribe(doorbell_subscriber *subscriber, const char *stream, const char *start);
DOORBELL_API int doorbell_unsubscribe(doorbell_subscriber *subscriber, const char *stream);

/* 1: a notice can be taken; 0: none, the time is over or doorbell_wake() was called. timeout_ms: -1 is for ever. */
DOORBELL_API int doorbell_poll(doorbell_subscriber *subscriber, int timeout_ms);

/* The next notice, which lives until the next call; NULL: there is none (or -1, as doorbell_error() tells). */
DOORBELL_API const doorbell_notice *doorbell_next(doorbell_subscriber *subscriber);

DOORBELL_API void doorbell_wake(doorbell_subscriber *subscriber); /* makes doorbell_poll() return; thread-safe */

/* Writes up to `size` descriptors, and returns how many there are. */
DOORBELL_API int doorbell_descriptors(doorbell_subscriber *subscriber, doorbell_descriptor *descriptors, int size);
DOORBELL_API int doorbell_timeout(doorbell_subscriber *subscriber); /* in ms, rounded up; -1: none */

DOORBELL_API enum doorbell_state doorbell_get_state(doorbell_subscriber *subscriber);
DOORBELL_API const char *doorbell_state_reason(doorbell_subscriber *subscriber); /* why it is not live; "" when it is */

/* Of the last call that failed; they live until the next call. */
DOORBELL_API const char *doorbell_error(doorbell_subscriber *subscriber);
DOORBELL_API const char *doorbell_sqlstate(doorbell_subscriber *subscriber); /* "": not the server's refusal */

/* The frame of an event, gap or reset as text/event-stream. envelope: data has stream, seq, type and time, too. The
 * text lives until the next call. */
DOORBELL_API const char *doorbell_sse(doorbell_subscriber *subscriber, const doorbell_notice *notice, int envelope);

#ifdef __cplusplus
}
#endif

#endif
