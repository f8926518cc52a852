/* What the measurement (token.c) and a transport (token_tcp.c or token_mpi.c) offer each other. */
#ifndef TOKEN_H
#define TOKEN_H

#include <stddef.h>

/* A row of the table that the measurement makes and the transport brings to where it is printed. */
enum { ROW = 320 };

#define SETTINGS_USAGE "BYTES RUNS WARM_UP_S WINDOW_S"

struct settings {
    size_t bytes;
    int runs;
    double warm_up_s, window_s;
};

/* By the measurement. Pairs count from 1. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
int understood(char **words, struct settings *settings); /* four words, as SETTINGS_USAGE has them */
void produce(int pair, const struct settings *settings);
void consume(const struct settings *settings);
void print_head(int pairs, const struct settings *settings, const char *transport);
void print_end(void);

/* By the transport: both ends of a pair. */
void send_token(const void *token, size_t bytes);
void receive_token(void *token, size_t bytes);

/* By the transport: producers, who all come to await_start() before any of them leaves it. */
void await_start(void);
void tell_window_is_over(void);
int all_windows_are_over(void); /* does not wait */
void hand_in(const char row[ROW]);

#endif
