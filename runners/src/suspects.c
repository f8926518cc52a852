/*
 * Every node and every pair of nodes of a cluster in one run, so that they can be compared with each other.
 *
 * usage: suspects NODE_S ARRAY_MIB TURN LATENCY_S BANDWIDTH_S BYTES [ROUNDS]   (an MPI program, one process a node)
 *
 * First every node by itself: DGEMM, all nodes at once, and STREAM's triad a := b + 3 c with arrays of ARRAY_MIB MiB,
 * TURN nodes at a time (0: all), each repeated until NODE_S seconds have passed. DGEMM's order is the power of two at
 * which one product takes node 1 at least a tenth of that.
 *
 * Then a round-robin tournament by the circle method: in each round every node is in one pair at most, and after all
 * rounds every pair has met once. Which nodes meet when is drawn anew in each run, so that no pair always meets at the
 * same moment. With ROUNDS, only so many of all rounds are held, in which each node meets as many others, and as many
 * again for the nodes whose median rate is then more than SUSPICIOUS below that of all nodes. In a round all pairs at once exchange messages of 8 bytes for LATENCY_S (half the median round trip is
 * the latency), then send messages of BYTES one way for BANDWIDTH_S, and then the other way. The receiver divides the
 * bytes after the first message by the time after it, in parts of the window. Two messages are always under way.
 */
#include <cblas.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, SMALL = 8, MOST_TRIPS = 1 << 18, LEAST_ORDER = 64, MOST_ORDER = 8192, HOST = 64 };
enum { UNDER_WAY = 2, TRIAD_BYTES = 3 * 8, SLICES = 5 };

static const double SUSPICIOUS = 0.01; /* of the rate; the campaign's tolerance */

static int rank, ranks;

/* What node `low` says of its pair. */
struct row {
    int round, low, high;
    double latency, trips, forward, reverse;
};

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    fputs("suspects: ", stderr);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
    va_end(words);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void *memory(size_t bytes)
{
    void *block = malloc(bytes);
    if (!block)
        fail("node %d has no memory for %zu bytes", rank + 1, bytes);
    return block;
}

static double *numbers(size_t count)
{
    double *block = memory(count * sizeof *block);
#pragma omp parallel for /* each core touches first what it works on */
    for (size_t i = 0; i < count; i++)
        block[i] = (double)(i % 1000) / 1000.0 - 0.5;
    return block;
}

static void product(int order, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, order, order, order, -1.0, a, order, b, order, 1.0, c, order);
}

/* Seconds of one product, after an untimed one. */
static double product_time(int order)
{
    size_t count = (size_t)order * order;
    double *a = numbers(count), *b = numbers(count), *c = numbers(count);
    product(order, a, b, c);
    double start = MPI_Wtime();
    product(order, a, b, c);
    double elapsed = MPI_Wtime() - start;
    free(a), free(b), free(c);
    return elapsed;
}

/* All nodes compute products of node 1's order. */
static int common_order(double window)
{
    int order = LEAST_ORDER;
    if (rank == 0)
        while (order < MOST_ORDER && product_time(order) < window / 10)
            order *= 2;
    MPI_Bcast(&order, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return order;
}

/* [flop/s] */
static double dgemm_rate(int order, double window)
{
    size_t count = (size_t)order * order;
    double *a = numbers(count), *b = numbers(count), *c = numbers(count);
    product(order, a, b, c);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), elapsed = 0.0, products = 0.0;
    while (elapsed < window) {
        product(order, a, b, c);
        products++;
        elapsed = MPI_Wtime() - start;
    }
    free(a), free(b), free(c);
    return 2.0 * order * order * order * products / elapsed;
}

/* [B/s], as STREAM counts; the best of all passes, as STREAM reports */
static double stream_rate(size_t length, double window)
{
    double *a = numbers(length), *b = numbers(length), *c = numbers(length);
    double begin = MPI_Wtime(), best = 0.0;
    while (MPI_Wtime() - begin < window) {
        double start = MPI_Wtime();
#pragma omp parallel for
        for (size_t i = 0; i < length; i++)
            a[i] = b[i] + 3.0 * c[i];
        double rate = TRIAD_BYTES * (double)length / (MPI_Wtime() - start);
        best = rate > best ? rate : best;
    }
    free(a), free(b), free(c);
    return best;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The lower node of the pair times its round trips and says which is the last. */
static void exchange(int peer, double window, double *trips, struct row *row)
{
    char message[SMALL] = {0};
    if (rank > peer) {
        while (!message[0]) {
            MPI_Recv(message, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
        return;
    }
    int count = 0;
    double begin = MPI_Wtime(), start = begin, end;
    for (;;) {
        message[0] = start - begin >= window || count == MOST_TRIPS - 1;
        MPI_Send(message, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(message, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        end = MPI_Wtime();
        trips[count++] = end - start;
        start = end;
        if (message[0])
            break;
    }
    qsort(trips, (size_t)count, sizeof *trips, ascending);
    row->latency = (trips[(count - 1) / 2] + trips[count / 2]) / 4; /* half of the median */
    row->trips = count;
}

/* The last messages, as many as may be under way, say that they are: all that were to be received then were. */
static void send(int peer, int bytes, char *buffers[UNDER_WAY], double window)
{
    MPI_Request sent[UNDER_WAY] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    double begin = MPI_Wtime();
    for (int i = 0, left = UNDER_WAY; left; i = (i + 1) % UNDER_WAY) {
        MPI_Wait(&sent[i], MPI_STATUS_IGNORE);
        int is_last = left < UNDER_WAY || MPI_Wtime() - begin >= window;
        buffers[i][0] = (char)is_last;
        left -= is_last;
        MPI_Isend(buffers[i], bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &sent[i]);
    }
    MPI_Waitall(UNDER_WAY, sent, MPI_STATUSES_IGNORE);
}

/* [B/s]: the median of the rates in SLICES parts of the window, so that a moment in which the node did something else
 * does not count as a slow path. */
static double receive(int peer, int bytes, char *buffers[UNDER_WAY], double window)
{
    MPI_Request received[UNDER_WAY];
    for (int i = 0; i < UNDER_WAY; i++)
        MPI_Irecv(buffers[i], bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &received[i]);
    double begin = 0.0, since = 0.0, count = 0.0, rates[SLICES];
    int slices = 0;
    for (int i = 0, left = UNDER_WAY; left; i = (i + 1) % UNDER_WAY) {
        MPI_Wait(&received[i], MPI_STATUS_IGNORE);
        double now = MPI_Wtime();
        if (begin == 0.0)
            begin = since = now;
        else
            count++;
        if (buffers[i][0])
            left--;
        else
            MPI_Irecv(buffers[i], bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &received[i]);
        int is_over = now - begin >= window * (slices + 1) / SLICES || !left;
        if (is_over && count > 0.0 && now > since && slices < SLICES) {
            rates[slices++] = count * bytes / (now - since);
            since = now, count = 0.0;
        }
    }
    qsort(rates, (size_t)slices, sizeof *rates, ascending);
    return slices ? (rates[(slices - 1) / 2] + rates[slices / 2]) / 2 : 0.0;
}

static void one_way(int from, int to, int bytes, char *buffers[UNDER_WAY], double window, double *rate)
{
    if (rank == from) {
        send(to, bytes, buffers, window);
        if (rate)
            MPI_Recv(rate, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        double measured = receive(from, bytes, buffers, window);
        if (rate)
            *rate = measured;
        else
            MPI_Send(&measured, 1, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD);
    }
}

/* The same permutation of the nodes everywhere; an odd number of them has a guest, whose partner rests. */
static void draw(int *seats, int count)
{
    for (int i = 0; i < count; i++)
        seats[i] = i;
    if (rank == 0)
        srand((unsigned)(MPI_Wtime() * 1e6));
    for (int i = count - 1; rank == 0 && i > 0; i--) {
        int other = rand() % (i + 1), seat = seats[i];
        seats[i] = seats[other];
        seats[other] = seat;
    }
    MPI_Bcast(seats, count, MPI_INT, 0, MPI_COMM_WORLD);
}

/* Whom this node meets: seat 0 stays, the others go round. */
static int partner(const int *seats, int count, int round)
{
    for (int i = 0; i < count / 2; i++) {
        int left = i ? seats[1 + (i - 1 + round) % (count - 1)] : seats[0];
        int right = seats[1 + (count - 2 - i + round) % (count - 1)];
        if (left == rank || right == rank)
            return left == rank ? right : left;
    }
    return -1;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0.0;
}

/* One round of all pairs, or of those with a node of `chosen`, if there is such a list. */
static void hold(int round, int peer, const char *chosen, const double windows[2], int bytes, char *buffers[UNDER_WAY],
                 double *trips, struct row *row)
{
    int low = rank < peer;
    memset(row, 0, sizeof *row);
    if (peer >= ranks || (peer >= 0 && chosen && !chosen[rank] && !chosen[peer]))
        peer = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (peer >= 0)
        exchange(peer, windows[0], trips, row);
    MPI_Barrier(MPI_COMM_WORLD);
    if (peer >= 0)
        one_way(low ? rank : peer, low ? peer : rank, bytes, buffers, windows[1], low ? &row->forward : NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (peer >= 0)
        one_way(low ? peer : rank, low ? rank : peer, bytes, buffers, windows[1], low ? &row->reverse : NULL);
    row->round = peer >= 0 && low ? round + 1 : 0;
    row->low = rank + 1, row->high = peer + 1;
}

/* Which nodes' median rates, sending or receiving, are suspiciously low after so many rounds: 1 for each, on all nodes. */
static int suspicious(const struct row *rows, int rounds, char *chosen)
{
    int most = 2 * rounds, size = rounds * (int)sizeof *rows, found = 0;
    struct row *all = rank ? NULL : memory((size_t)ranks * (size_t)size);
    MPI_Gather(rows, size, MPI_BYTE, all, size, MPI_BYTE, 0, MPI_COMM_WORLD);
    memset(chosen, 0, (size_t)ranks);
    for (int sending = 0; rank == 0 && sending < 2; sending++) {
        double *rates = memory((size_t)ranks * (size_t)most * sizeof *rates), *middles = memory(2 * (size_t)ranks * sizeof *middles);
        int *counts = memory((size_t)ranks * sizeof *counts);
        memset(counts, 0, (size_t)ranks * sizeof *counts);
        for (int i = 0; i < ranks * rounds; i++) {
            if (!all[i].round)
                continue;
            int from = all[i].low - 1, to = all[i].high - 1, a = sending ? from : to, b = sending ? to : from;
            rates[a * most + counts[a]++] = all[i].forward;
            rates[b * most + counts[b]++] = all[i].reverse;
        }
        for (int i = 0; i < ranks; i++)
            middles[i] = middles[ranks + i] = median(rates + i * most, counts[i]);
        double typical = median(middles + ranks, ranks);
        for (int i = 0; i < ranks; i++)
            if (middles[i] < (1.0 - SUSPICIOUS) * typical)
                chosen[i] = 1;
        free(rates), free(middles), free(counts);
    }
    free(all);
    MPI_Bcast(chosen, ranks, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        found += chosen[i];
    return found;
}

static double above_0(const char *word)
{
    char *end;
    double value = strtod(word, &end);
    return *end || !(value > 0.0) || value > 1e9 ? 0.0 : value;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int valid = argc == 7 || argc == 8, wanted = argc == 8 ? atoi(argv[7]) : 0;
    double node_s = valid ? above_0(argv[1]) : 0, mib = valid ? above_0(argv[2]) : 0;
    double latency_s = valid ? above_0(argv[4]) : 0, bandwidth_s = valid ? above_0(argv[5]) : 0;
    int turn = valid ? atoi(argv[3]) : -1, bytes = valid ? atoi(argv[6]) : 0;
    if (!node_s || mib < 1 || turn < 0 || !latency_s || !bandwidth_s || bytes < 1 || wanted < 0 || ranks < 2) {
        if (rank == 0)
            fputs("usage: suspects NODE_S ARRAY_MIB TURN LATENCY_S BANDWIDTH_S BYTES [ROUNDS], on two nodes or more\n", stderr);
        MPI_Finalize();
        return 2;
    }

    char host[MPI_MAX_PROCESSOR_NAME] = "", *hosts = memory((size_t)ranks * HOST);
    int length;
    MPI_Get_processor_name(host, &length);
    host[HOST - 1] = '\0';
    MPI_Gather(host, HOST, MPI_CHAR, hosts, HOST, MPI_CHAR, 0, MPI_COMM_WORLD);

    int order = common_order(node_s);
    double of_node[2] = {dgemm_rate(order, node_s), 0.0}, *of_nodes = memory(2 * (size_t)ranks * sizeof *of_nodes);
    size_t numbers_each = (size_t)(mib * (1 << 20)) / sizeof(double);
    int each = turn ? turn : ranks;
    for (int first = 0; first < ranks; first += each) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (first <= rank && rank < first + each)
            of_node[1] = stream_rate(numbers_each, node_s);
    }
    MPI_Gather(of_node, 2, MPI_DOUBLE, of_nodes, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);

    int count = ranks + ranks % 2, *seats = memory((size_t)count * sizeof *seats);
    draw(seats, count);
    char *buffers[UNDER_WAY];
    for (int i = 0; i < UNDER_WAY; i++)
        memset(buffers[i] = memory((size_t)bytes), 0, (size_t)bytes);
    double *trips = memory(MOST_TRIPS * sizeof *trips);
    struct row *rows = memory((size_t)count * sizeof *rows), *all = NULL;
    double windows[2] = {latency_s, bandwidth_s};
    int rounds = wanted && wanted < count - 1 ? wanted : count - 1, held = rounds;
    for (int round = 0; round < rounds; round++)
        hold(round, partner(seats, count, round), NULL, windows, bytes, buffers, trips, &rows[round]);
    char *chosen = memory((size_t)ranks);
    int around = rounds < count - 1 ? suspicious(rows, rounds, chosen) : 0;
    if (around)
        held = 2 * rounds < count - 1 ? 2 * rounds : count - 1;
    for (int round = rounds; round < held; round++)
        hold(round, partner(seats, count, round), chosen, windows, bytes, buffers, trips, &rows[round]);

    int size = held * (int)sizeof *rows;
    if (rank == 0)
        all = memory((size_t)ranks * (size_t)size);
    MPI_Gather(rows, size, MPI_BYTE, all, size, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("suspects: %d nodes, order %d, arrays of %g MiB, turns of %d, messages of %d bytes, "
               "windows %g s, %g s, %g s", ranks, order, mib, turn, bytes, node_s, latency_s, bandwidth_s);
        if (rounds < count - 1)
            printf(", %d rounds and %d around %d nodes", rounds, held - rounds, around);
        printf("\n");
        printf("node        flop/s     triad B/s  host\n");
        for (int i = 0; i < ranks; i++)
            printf("%4d %13.6e %13.6e  %s\n", i + 1, of_nodes[2 * i], of_nodes[2 * i + 1], hosts + (size_t)i * HOST);
        printf("round   low  high     latency s     trips   forward B/s   reverse B/s\n");
        for (int i = 0; i < ranks * held; i++)
            if (all[i].round)
                printf("%5d %5d %5d %13.6e %9.0f %13.6e %13.6e\n", all[i].round, all[i].low, all[i].high,
                       all[i].latency, all[i].trips, all[i].forward, all[i].reverse);
        printf("end of suspects\n");
    }
    MPI_Finalize();
    return 0;
}
