/*
 * Token exchange: a producer sends a token to its consumer, which returns it, again and again, while other pairs of
 * nodes do the same. How many exchanges does a pair complete in a window of time, and how long do they take?
 *
 * This is the measurement; tokens travel by TCP (token_tcp.c) or by MPI (token_mpi.c). In a run all producers start
 * together, exchange for a warm-up and a window, both of fixed length, and go on until the last one's window is over:
 * nobody is measured while another pair is silent. An exchange counts when its reply came within the window.
 */
#include "token.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The first byte of a token: to be returned, or the last one, which is not. */
enum { RETURN = 'r', LAST = 'l' };

static const size_t LARGEST_TOKEN = 64 << 20;
static const int64_t SECOND_NS = 1000000000;
/* From the word to start to the first token: by then the others have heard it too, on a network still idle. */
static const int64_t SETTLE_NS = 50000000;
/* Between two looks at whether the others are done, each of which costs a system call. */
static const int64_t LOOK_NS = 5000000;
/* No exchange is faster, so memory for so many is enough; only what is used is taken. */
static const double FASTEST_S = 2e-7;
static const double LONGEST_S = 60;

static const double LEVELS[] = {0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0};
enum { LEVEL_COUNT = sizeof LEVELS / sizeof LEVELS[0] };

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("token: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

int understood(char **words, struct settings *settings)
{
    char *rest[4];
    double bytes = strtod(words[0], &rest[0]), runs = strtod(words[1], &rest[1]);
    settings->warm_up_s = strtod(words[2], &rest[2]);
    settings->window_s = strtod(words[3], &rest[3]);
    for (int i = 0; i < 4; i++)
        if (rest[i] == words[i] || *rest[i])
            return 0;
    if (!(bytes >= 1 && bytes <= (double)LARGEST_TOKEN && runs >= 1 && runs <= 1000))
        return 0;
    settings->bytes = (size_t)bytes;
    settings->runs = (int)runs;
    return settings->warm_up_s >= 0 && settings->warm_up_s <= LONGEST_S && settings->window_s > 0 &&
           settings->window_s <= LONGEST_S;
}

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * SECOND_NS + time.tv_nsec;
}

static void *memory(size_t bytes)
{
    void *block = malloc(bytes);
    if (!block)
        fail("no memory for %zu bytes", bytes);
    return block;
}

/* Exchange until all producers' windows are over; the round trips that count go to `round_trips` in ns. */
static size_t exchange(char *token, size_t bytes, int64_t begin_ns, int64_t end_ns, int64_t *round_trips, size_t most)
{
    size_t counted = 0;
    int told = 0;
    int64_t sent_ns = now_ns(CLOCK_MONOTONIC), look_ns = sent_ns;
    for (;;) {
        send_token(token, bytes);
        receive_token(token, bytes);
        int64_t back_ns = now_ns(CLOCK_MONOTONIC);
        if (back_ns >= begin_ns && back_ns < end_ns) {
            if (counted == most)
                fail("exchanges faster than %g s are more than it can keep", FASTEST_S);
            round_trips[counted++] = back_ns - sent_ns;
        }
        sent_ns = back_ns;
        if (back_ns < look_ns)
            continue;
        look_ns = back_ns + LOOK_NS;
        if (!told && back_ns >= end_ns) {
            tell_window_is_over();
            told = 1;
        }
        if (all_windows_are_over())
            return counted;
    }
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The row of a run. Levels are by the nearest rank, so that each is a round trip that there was. */
static void write_row(char row[ROW], int pair, int run, double begin_s, int64_t *round_trips, size_t count,
                      const struct settings *settings)
{
    double sum_ns = 0;
    qsort(round_trips, count, sizeof *round_trips, ascending);
    for (size_t i = 0; i < count; i++)
        sum_ns += (double)round_trips[i];
    int used = snprintf(row, ROW, "%4d %8zu %4d %17.6f %9zu %9.6f", pair, settings->bytes, run, begin_s, count,
                        settings->window_s);
    for (int i = 0; i < LEVEL_COUNT; i++) {
        size_t rank = (size_t)ceil(LEVELS[i] * (double)count);
        double level_us = count ? (double)round_trips[rank ? rank - 1 : 0] / 1e3 : NAN;
        used += snprintf(row + used, ROW - (size_t)used, " %11.3f", level_us);
    }
    snprintf(row + used, ROW - (size_t)used, " %14.6f\n", count ? sum_ns / (double)count / 1e3 : NAN);
}

void produce(int pair, const struct settings *settings)
{
    const size_t most = (size_t)(settings->window_s / FASTEST_S) + 1;
    char *token = memory(settings->bytes);
    int64_t *round_trips = memory(most * sizeof *round_trips);
    memset(token, RETURN, settings->bytes);
    for (int run = 1; run <= settings->runs; run++) {
        char row[ROW] = "";
        await_start();
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
        int64_t begin_ns = now_ns(CLOCK_MONOTONIC) + nanoseconds(settings->warm_up_s);
        double begin_s = (double)now_ns(CLOCK_REALTIME) / 1e9 + settings->warm_up_s;
        int64_t end_ns = begin_ns + nanoseconds(settings->window_s);
        size_t count = exchange(token, settings->bytes, begin_ns, end_ns, round_trips, most);
        write_row(row, pair, run, begin_s, round_trips, count, settings);
        if (run == settings->runs) { /* while those who would notice a loss are still there */
            token[0] = LAST;
            send_token(token, settings->bytes);
        }
        hand_in(row);
    }
    free(round_trips);
    free(token);
}

void consume(const struct settings *settings)
{
    char *token = memory(settings->bytes);
    for (receive_token(token, settings->bytes); token[0] != LAST; receive_token(token, settings->bytes))
        send_token(token, settings->bytes);
    free(token);
}

void print_head(int pairs, const struct settings *settings, const char *transport)
{
    printf("token: %d pairs, %zu bytes, %d runs, warm-up %.6f s, window %.6f s, by %s\n", pairs, settings->bytes,
           settings->runs, settings->warm_up_s, settings->window_s, transport);
    printf("pair    bytes  run             begin exchanges    window");
    for (int i = 0; i < LEVEL_COUNT; i++)
        printf(" %7g%% us", 100 * LEVELS[i]);
    printf("        mean us\n");
}

void print_end(void)
{
    printf("end of token\n");
    if (fflush(stdout))
        fail("its output could not be written");
}
