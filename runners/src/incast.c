/* Many senders to one receiver, in synchronised blocks:
 *
 *   incast serve PORT
 *   incast fetch PORT BYTES BLOCKS SECONDS ADDRESS[,ADDRESS...]
 *
 * `fetch` asks all servers at once for BYTES each, waits until it has all of them, and asks for the next block, as a
 * client of striped storage does (Phanishayee et al., FAST 2008). It ends after BLOCKS blocks, or with the first one that
 * ends more than SECONDS after the first counted one began. One block before them is not counted: its connections are
 * new. It prints the time of each block, and for each server how many retransmission timeouts and retransmitted segments
 * its node had meanwhile. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SERVERS = 256, PIECE = 1 << 16, LINE = 4096 };

static void fail(const char *what)
{
    fprintf(stderr, "incast: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static long number(const char *word, long most)
{
    char *rest;
    long value = strtol(word, &rest, 10);
    if (*rest || value < 1 || value > most) {
        fprintf(stderr, "incast: %s has to be a whole number from 1 to %ld\n", word, most);
        exit(2);
    }
    return value;
}

static void at_once(int connection)
{
    if (setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)))
        fail("TCP_NODELAY");
}

/* The value of a counter that Linux keeps for the network namespace, in a table of proc(5); -1 where it is not there. */
static int64_t counter(const char *table, const char *group, const char *name)
{
    char names[LINE], values[LINE];
    FILE *file = fopen(table, "r");
    int64_t found = -1;
    while (file && found < 0 && fgets(names, sizeof names, file) && fgets(values, sizeof values, file)) {
        char *in_names, *in_values;
        if (strncmp(names, group, strlen(group)))
            continue;
        char *key = strtok_r(names, " \n", &in_names), *value = strtok_r(values, " \n", &in_values);
        for (; key && value; key = strtok_r(NULL, " \n", &in_names), value = strtok_r(NULL, " \n", &in_values))
            if (!strcmp(key, name))
                found = atoll(value);
    }
    if (file)
        fclose(file);
    return found;
}

/* Timeouts and retransmitted segments of this node so far. */
static void count(int64_t counts[2])
{
    counts[0] = counter("/proc/net/netstat", "TcpExt:", "TCPTimeouts");
    counts[1] = counter("/proc/net/snmp", "Tcp:", "RetransSegs");
}

static int send_all(int connection, const void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(connection, (const char *)bytes + done, length - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return 0;
        done += sent;
    }
    return 1;
}

static int receive_all(int connection, void *bytes, size_t length)
{
    return recv(connection, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

/* Send what is asked for until nobody asks. A request is a number of bytes; 0 asks for the counts. */
static void answer(int connection)
{
    static char piece[PIECE];
    uint64_t asked;
    int whole = 1;
    while (whole && receive_all(connection, &asked, sizeof asked)) {
        if (!asked) {
            int64_t counts[2];
            count(counts);
            whole = send_all(connection, counts, sizeof counts);
        }
        for (uint64_t left = asked; whole && left;) {
            size_t length = left < PIECE ? left : PIECE;
            whole = send_all(connection, piece, length);
            left -= length;
        }
    }
    close(connection);
}

static void serve(int port)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = INADDR_ANY};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 16))
        fail("listening");
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection < 0)
            fail("accepting");
        at_once(connection);
        answer(connection);
    }
}

struct client {
    int count;
    struct pollfd servers[SERVERS];
    int64_t left[SERVERS];
    int64_t before[SERVERS][2];
};

static void ask_counts(struct client *client, int server, int64_t counts[2])
{
    int connection = client->servers[server].fd;
    if (!send_all(connection, &(uint64_t){0}, sizeof(uint64_t)) || !receive_all(connection, counts, 2 * sizeof(int64_t)))
        fail("a server's counts");
}

/* Fetch one block; returns its time in seconds. */
static double fetch(struct client *client, uint64_t bytes)
{
    static char piece[PIECE];
    int waiting = client->count;
    double begin = now_s();
    for (int i = 0; i < client->count; i++) {
        client->left[i] = bytes;
        client->servers[i].events = POLLIN;
        if (!send_all(client->servers[i].fd, &bytes, sizeof bytes))
            fail("asking a server");
    }
    while (waiting) {
        if (poll(client->servers, client->count, -1) < 0)
            fail("poll");
        for (int i = 0; i < client->count; i++) {
            if (!client->servers[i].revents)
                continue;
            size_t most = client->left[i] < PIECE ? client->left[i] : PIECE;
            ssize_t got = recv(client->servers[i].fd, piece, most, MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            if (got <= 0)
                fail("a server has ended");
            client->left[i] -= got;
            if (!client->left[i]) {
                client->servers[i].events = 0;
                waiting--;
            }
        }
    }
    return now_s() - begin;
}

static void connect_to(struct client *client, const char *address, int port)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (client->count == SERVERS || inet_pton(AF_INET, address, &server.sin_addr) != 1) {
        fprintf(stderr, "incast: %s is no IPv4 address, or one too many\n", address);
        exit(2);
    }
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&server, sizeof server))
        fail(address);
    at_once(connection);
    client->servers[client->count++].fd = connection;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && !strcmp(argv[1], "serve"))
        serve(number(argv[2], 65535));
    if (argc != 7 || strcmp(argv[1], "fetch")) {
        fprintf(stderr, "usage: incast serve PORT\n       incast fetch PORT BYTES BLOCKS SECONDS ADDRESS[,ADDRESS...]\n");
        return 2;
    }
    static struct client client;
    int port = number(argv[2], 65535);
    uint64_t bytes = number(argv[3], 1L << 40);
    long blocks = number(argv[4], 1000000), done = 0;
    double most_s = atof(argv[5]);
    for (char *rest, *address = strtok_r(argv[6], ",", &rest); address; address = strtok_r(NULL, ",", &rest))
        connect_to(&client, address, port);
    double first_s = fetch(&client, bytes), begin;
    for (int i = 0; i < client.count; i++)
        ask_counts(&client, i, client.before[i]);
    printf("incast: %d senders, %" PRIu64 " bytes from each, first block %.9f s\n", client.count, bytes, first_s);
    begin = now_s();
    while (done < blocks && (!done || now_s() - begin < most_s)) {
        double block_s = fetch(&client, bytes);
        printf("%ld %.9f\n", ++done, block_s);
    }
    for (int i = 0; i < client.count; i++) {
        int64_t after[2];
        ask_counts(&client, i, after);
        printf("sender %d: %" PRId64 " timeouts, %" PRId64 " retransmitted\n", i + 1, after[0] - client.before[i][0],
               after[1] - client.before[i][1]);
    }
    printf("end of incast\n");
    return 0;
}
