/* The same in C: prints the version of the library, and what it says to an empty stream key. */
#include <doorbell/doorbell.h>

#include <stdio.h>

int main(void)
{
	doorbell_subscriber *subscriber = doorbell_connect("");
	printf("%s %d\n", doorbell_version(), doorbell_subscribe(subscriber, "", "now"));
	doorbell_close(subscriber);
}
