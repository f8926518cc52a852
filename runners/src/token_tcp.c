/*
 * Token exchange by TCP (see token.c):
 *
 * usage: token consume PORT [real-time]
 *        token produce PORT [real-time]
 *        token coordinate BYTES RUNS WARM_UP_S WINDOW_S PRODUCER,CONSUMER...   (each HOST:PORT)
 *
 * In real time an end of a pair runs before all ordinary work, which otherwise may keep it waiting until the scheduler's
 * next tick. Pairs that keep all processors busy should not: nobody else would run.
 *
 * Consumers and producers wait for a caller. The coordinator calls the producers, each of which calls its consumer.
 * Whoever loses another one says so and ends with exit code 1, by which the next one loses it, and so on.
 */
#include "token.h"
#include "token_tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CALL_WITHIN_S = 30, ANSWER_WITHIN_S = 5, LOOK_S = 1 };

static int peer = -1;    /* the other end of a pair */
static int control = -1; /* a producer's coordinator */

static void run_in_real_time(void)
{
    if (sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1}))
        fail("real time: %s; root may, others leave real_time out", strerror(errno));
}

static void set_patience(int connection, int seconds)
{
    struct timeval patience = {.tv_sec = seconds};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static int without_delay(int connection)
{
    int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connection;
}

int connected_to(const char *address)
{
    char host[ORDER];
    const char *colon = strrchr(address, ':');
    if (!colon)
        fail("%s is no HOST:PORT", address);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    struct addrinfo *found, wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    int fault = getaddrinfo(host, colon + 1, &wanted, &found);
    if (fault)
        fail("%s: %s", address, gai_strerror(fault));
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    set_patience(connection, ANSWER_WITHIN_S);
    if (connect(connection, found->ai_addr, found->ai_addrlen))
        fail("%s: %s", address, errno == EINPROGRESS ? "no answer" : strerror(errno));
    set_patience(connection, 0);
    freeaddrinfo(found);
    return without_delay(connection);
}

/* The one caller on a port. */
static int called_on(const char *port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1))
        fail("port %s: %s", port, strerror(errno));
    if (poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, CALL_WITHIN_S * 1000) != 1)
        fail("nobody called on port %s within %d s", port, CALL_WITHIN_S);
    int caller = accept(listener, NULL, NULL);
    if (caller < 0)
        fail("port %s: %s", port, strerror(errno));
    close(listener);
    return without_delay(caller);
}

static int would_wait(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static void lost(const char *whom)
{
    fail("%s ended before the measurement did", whom);
}

/* What the coordinator says, 0 for nothing new; only a producer has one to lose. */
static char coordinator_says(int flags)
{
    char word = 0;
    ssize_t got = control < 0 ? 1 : recv(control, &word, 1, MSG_DONTWAIT | flags);
    if (got != 1 && !would_wait(got))
        lost("the coordinator");
    return word;
}

void send_all(int connection, const void *data, size_t bytes, const char *whom)
{
    for (const char *next = data, *end = next + bytes; next < end;) {
        ssize_t sent = send(connection, next, (size_t)(end - next), MSG_NOSIGNAL);
        if (sent > 0)
            next += sent;
        else if (would_wait(sent))
            coordinator_says(MSG_PEEK);
        else
            lost(whom);
    }
}

static void receive_all(int connection, void *data, size_t bytes, const char *whom)
{
    for (char *next = data, *end = next + bytes; next < end;) {
        ssize_t got = recv(connection, next, (size_t)(end - next), 0);
        if (got > 0)
            next += got;
        else if (would_wait(got))
            coordinator_says(MSG_PEEK);
        else
            lost(whom);
    }
}

static const char *other_end(void)
{
    return control < 0 ? "the producer" : "the consumer";
}

void send_token(const void *token, size_t bytes)
{
    send_all(peer, token, bytes, other_end());
}

void receive_token(void *token, size_t bytes)
{
    receive_all(peer, token, bytes, other_end());
}

void await_start(void)
{
    send_all(control, &(char){READY}, 1, "the coordinator");
    while (coordinator_says(0) != START) {
        struct pollfd waiting[] = {{.fd = control, .events = POLLIN}, {.fd = peer, .events = POLLIN}};
        poll(waiting, 2, -1);
        if (waiting[1].revents) /* no token is under way */
            lost("the consumer");
    }
}

void tell_window_is_over(void)
{
    send_all(control, &(char){OVER}, 1, "the coordinator");
}

int all_windows_are_over(void)
{
    return coordinator_says(0) == END;
}

void hand_in(const char row[ROW])
{
    send_all(control, row, ROW, "the coordinator");
}

/* Take an order apart; returns the pair. */
static int understand(char order[ORDER], struct settings *settings, char consumer[ORDER])
{
    char words[4][32], *each[] = {words[0], words[1], words[2], words[3]};
    int pair;
    order[ORDER - 1] = 0;
    if (sscanf(order, "%31s %31s %31s %31s %d %511s", each[0], each[1], each[2], each[3], &pair, consumer) != 6 ||
        !understood(each, settings))
        fail("who called is no coordinator or producer");
    return pair;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    char order[ORDER], consumer[ORDER];
    struct settings settings;
    int in_real_time = argc == 4 && !strcmp(argv[3], "real-time"), an_end = argc == 3 || in_real_time;
    if (in_real_time)
        run_in_real_time();
    if (!strcmp(role, "consume") && an_end) {
        peer = called_on(argv[2]);
        receive_all(peer, order, ORDER, "the producer");
        understand(order, &settings, consumer);
        consume(&settings);
    } else if (!strcmp(role, "produce") && an_end) {
        int coordinator = called_on(argv[2]);
        receive_all(coordinator, order, ORDER, "the coordinator");
        int pair = understand(order, &settings, consumer);
        peer = connected_to(consumer);
        send_all(peer, order, ORDER, "the consumer");
        control = coordinator;
        set_patience(peer, LOOK_S);
        produce(pair, &settings);
    } else if (!strcmp(role, "coordinate") && argc > 6) {
        coordinate(argv + 2, argc - 6);
    } else {
        fprintf(stderr, "usage: token consume PORT [real-time] | token produce PORT [real-time]\n"
                        "       token coordinate " SETTINGS_USAGE " PRODUCER,CONSUMER...   (each HOST:PORT)\n");
        return 2;
    }
    return 0;
}
