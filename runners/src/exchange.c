/*
 * Is an exchange both ways as fast as one way? An MPI program, one rank a node:
 *
 * usage: exchange ROUNDS REPETITIONS PATTERN[,PATTERN...] BYTES...
 *
 *   PATTERN  one_way   rank 0 sends two messages to rank 1: Isend, Isend, Waitall; all others wait
 *            halo      every rank exchanges with both neighbours of a ring: Irecv, Irecv, Isend, Isend, Waitall
 *            sendrecv  the same by two MPI_Sendrecv, to the right and to the left
 *            roll      HPL's spread-and-roll: with the left and the right neighbour in turn, Irecv, Send, Wait, so often
 *                      that all ranks' rows would have passed; neighbours begin a step when each is done with its last
 *
 * A repetition is ROUNDS rounds of a pattern with messages of BYTES, begun together by a barrier. It takes as long as
 * the rank that takes longest. Rank 0 prints for each pattern and size the messages that a rank sends in a
 * repetition, the median of the repetitions and all of them [s], in their order.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, NEIGHBOURS = 2, MOST_REPETITIONS = 1000, MOST_ROUNDS = 1000, MOST_BYTES = 1 << 28 };

static int rank, ranks, left, right;
static char *out, *in; /* a message for each neighbour, and one from each */

static void fail(const char *what)
{
    if (rank == 0)
        fprintf(stderr, "exchange: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    abort();
}

static void send_to(int to, int bytes, int place, MPI_Request *request)
{
    MPI_Isend(out + (size_t)place * bytes, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, request);
}

static void receive_from(int from, int bytes, int place, MPI_Request *request)
{
    MPI_Irecv(in + (size_t)place * bytes, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, request);
}

static void one_way(int bytes)
{
    MPI_Request both[NEIGHBOURS];
    if (rank > 1)
        return;
    for (int i = 0; i < NEIGHBOURS; i++)
        if (rank == 0)
            send_to(1, bytes, i, &both[i]);
        else
            receive_from(0, bytes, i, &both[i]);
    MPI_Waitall(NEIGHBOURS, both, MPI_STATUSES_IGNORE);
}

static void halo(int bytes)
{
    MPI_Request all[2 * NEIGHBOURS];
    receive_from(left, bytes, 0, &all[0]);
    receive_from(right, bytes, 1, &all[1]);
    send_to(right, bytes, 0, &all[2]);
    send_to(left, bytes, 1, &all[3]);
    MPI_Waitall(2 * NEIGHBOURS, all, MPI_STATUSES_IGNORE);
}

static void sendrecv(int bytes)
{
    int to[NEIGHBOURS] = {right, left};
    for (int i = 0; i < NEIGHBOURS; i++)
        MPI_Sendrecv(out, bytes, MPI_BYTE, to[i], TAG, in, bytes, MPI_BYTE, to[1 - i], TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void roll(int bytes)
{
    for (int step = 0; step < ranks - 1; step++) {
        MPI_Request received;
        int partner = (rank + step) % 2 ? left : right;
        receive_from(partner, bytes, 0, &received);
        MPI_Send(out, bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
    }
}

static const struct pattern {
    const char *name;
    void (*round)(int bytes);
} patterns[] = {{"one_way", one_way}, {"halo", halo}, {"sendrecv", sendrecv}, {"roll", roll}};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

static const struct pattern *named(const char *name)
{
    for (int i = 0; i < PATTERNS; i++)
        if (!strcmp(name, patterns[i].name))
            return &patterns[i];
    fail("a PATTERN is one_way, halo, sendrecv or roll");
    return NULL;
}

/* [s], of the rank that takes longest */
static double repetition(const struct pattern *pattern, int bytes, int rounds)
{
    double begin, own, longest;
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int i = 0; i < rounds; i++)
        pattern->round(bytes);
    own = MPI_Wtime() - begin;
    MPI_Allreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const struct pattern *pattern, int bytes, int rounds, int repetitions)
{
    double times[MOST_REPETITIONS], sorted[MOST_REPETITIONS];
    repetition(pattern, bytes, rounds); /* connections are made and windows open by then */
    for (int i = 0; i < repetitions; i++)
        sorted[i] = times[i] = repetition(pattern, bytes, rounds);
    if (rank)
        return;
    qsort(sorted, (size_t)repetitions, sizeof *sorted, ascending);
    int messages = rounds * (pattern->round == roll ? ranks - 1 : NEIGHBOURS);
    double median = (sorted[(repetitions - 1) / 2] + sorted[repetitions / 2]) / 2;
    printf("%s %d %d %.9f", pattern->name, bytes, messages, median);
    for (int i = 0; i < repetitions; i++)
        printf(" %.9f", times[i]);
    printf("\n");
    fflush(stdout);
}

static int number(const char *word, int most, const char *fault)
{
    char *rest;
    long value = strtol(word, &rest, 10);
    if (*rest || value < 1 || value > most)
        fail(fault);
    return (int)value;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5)
        fail("usage: exchange ROUNDS REPETITIONS PATTERN[,PATTERN...] BYTES...");
    if (ranks < 2)
        fail("two ranks or more are needed");
    int rounds = number(argv[1], MOST_ROUNDS, "ROUNDS are 1 to 1000");
    int repetitions = number(argv[2], MOST_REPETITIONS, "REPETITIONS are 1 to 1000");
    left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    if (rank == 0)
        printf("exchange: %d ranks, %d rounds, %d repetitions\n", ranks, rounds, repetitions);
    for (char *name = strtok(argv[3], ","); name; name = strtok(NULL, ",")) {
        const struct pattern *pattern = named(name);
        for (int i = 4; i < argc; i++) {
            int bytes = number(argv[i], MOST_BYTES, "BYTES are 1 to 268435456");
            out = calloc(NEIGHBOURS, (size_t)bytes), in = calloc(NEIGHBOURS, (size_t)bytes);
            if (!out || !in)
                fail("no memory for the messages");
            measure(pattern, bytes, rounds, repetitions);
            free(out), free(in);
        }
    }
    if (rank == 0)
        printf("end of exchange\n");
    MPI_Finalize();
    return 0;
}
