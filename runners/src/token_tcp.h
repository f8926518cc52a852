/* What the ends of a pair (token_tcp.c) and the coordinator (token_coordinator.c) share: connections and words. */
#ifndef TOKEN_TCP_H
#define TOKEN_TCP_H

#include <stddef.h>

/* A producer's words to the coordinator, and the coordinator's to all producers. */
enum { READY = 'r', OVER = 'o', START = 's', END = 'e' };

/* The coordinator's order is a text: the words of the settings, the pair, and its consumer. */
enum { ORDER = 512 };

int connected_to(const char *address); /* HOST:PORT */
void send_all(int connection, const void *data, size_t bytes, const char *whom);

/* Words: the settings', then PRODUCER,CONSUMER for each pair. They are taken apart. */
void coordinate(char **words, int pairs);

#endif
