/* Follows a stream and prints what comes:  follow_c "dbname=shop" orders:7 [CURSOR] */
#include <doorbell/doorbell.h>

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: follow_c DSN STREAM [CURSOR]\n");
		return 2;
	}
	doorbell_subscriber *subscriber = doorbell_connect(argv[1]);
	if (subscriber == NULL) {
		perror("follow_c");
		return 1;
	}
	int result = doorbell_subscribe(subscriber, argv[2], argc > 3 ? argv[3] : "0");
	while (result == 0 && (result = doorbell_poll(subscriber, -1)) >= 0) {
		const doorbell_notice *notice;
		while ((notice = doorbell_next(subscriber)) != NULL) {
			if (notice->kind == DOORBELL_EVENT)
				printf("%s %s %s\n", notice->cursor, notice->type, notice->payload);
			else
				printf("%s: events up to %" PRId64 " were trimmed away\n", notice->stream, notice->seq);
			fflush(stdout);
		}
		result = 0;
	}
	fprintf(stderr, "follow_c: %s\n", doorbell_error(subscriber));
	doorbell_close(subscriber);
	return 1;
}
