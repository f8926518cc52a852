/* What a program feels while another one floods the network, as GPCNeT asks it (Chunduri et al., SC 2019):
 *
 *   congestion VICTIM CONGESTOR BYTES SECONDS
 *
 * An MPI program. Ranks 0, 2, 4 ... are victims: they time an operation of 8 bytes each, again and again for SECONDS,
 * alone and then while the other ranks, the congestors, exchange messages of BYTES.
 *
 *   VICTIM     ring: messages to one neighbour and from the other, or allreduce
 *   CONGESTOR  incast: all send to the first of them, alltoall: each sends to each, or none: they wait
 *
 * Rank 0 prints the median, the 99th percentile and the largest of all victims' times, alone and under load. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GO = 1, STOP, FLOOD, LAST, TURNS = 8, MOST = 1 << 20 };

static int rank, ranks;
static MPI_Comm own; /* victims, or congestors */
static int own_rank, own_ranks;

static void fail(const char *what)
{
    if (!rank)
        fprintf(stderr, "congestion: %s\n", what);
    MPI_Finalize();
    exit(2);
}

static void ring(void)
{
    double sent = rank, received;
    int right = (own_rank + 1) % own_ranks, left = (own_rank + own_ranks - 1) % own_ranks;
    MPI_Sendrecv(&sent, 1, MPI_DOUBLE, right, 0, &received, 1, MPI_DOUBLE, left, 0, own, MPI_STATUS_IGNORE);
}

static void allreduce(void)
{
    double mine = rank, sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, own);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Time the operation for so many seconds; rank 0 prints what all victims saw. */
static void measure(const char *phase, void (*operation)(void), double seconds)
{
    static double times[MOST];
    int count = 0, goes_on = 1;
    MPI_Barrier(own);
    double end = MPI_Wtime() + seconds;
    while (goes_on && count + TURNS <= MOST) {
        for (int i = 0; i < TURNS; i++) {
            double begin = MPI_Wtime();
            operation();
            times[count++] = MPI_Wtime() - begin;
        }
        goes_on = MPI_Wtime() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, own);
    }
    double *all = rank ? NULL : malloc(sizeof *all * count * own_ranks);
    MPI_Gather(times, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, own);
    if (rank)
        return;
    int number = count * own_ranks;
    qsort(all, number, sizeof *all, ascending);
    printf("%s %d %.9f %.9f %.9f\n", phase, number, all[number / 2], all[(int)(0.99 * number)], all[number - 1]);
    fflush(stdout);
    free(all);
}

static void tell(int tag)
{
    for (int other = 1; other < ranks; other += 2)
        MPI_Send(NULL, 0, MPI_BYTE, other, tag, MPI_COMM_WORLD);
}

/* Whether rank 0 has told this congestor to stop. */
static int is_stopped(MPI_Request *stop)
{
    int is_over;
    MPI_Test(stop, &is_over, MPI_STATUS_IGNORE);
    return is_over;
}

/* All send to the first. Returns the messages that it got. */
static long incast(char *buffer, int bytes, MPI_Request *stop)
{
    long got = 0;
    if (own_rank) {
        while (!is_stopped(stop))
            MPI_Send(buffer, bytes, MPI_BYTE, 0, FLOOD, own);
        MPI_Send(NULL, 0, MPI_BYTE, 0, LAST, own);
        return 0;
    }
    for (int sending = own_ranks - 1; sending;) {
        MPI_Status status;
        MPI_Recv(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &status);
        if (status.MPI_TAG == LAST)
            sending--;
        else
            got++;
    }
    MPI_Wait(stop, MPI_STATUS_IGNORE);
    return got;
}

/* Each sends to each, round after round. Returns the messages that this one got. */
static long alltoall(int bytes, MPI_Request *stop)
{
    char *out = calloc(own_ranks, bytes), *in = calloc(own_ranks, bytes);
    long got = 0;
    for (int over = 0, mine; !over; got += own_ranks - 1) {
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, own);
        mine = *stop == MPI_REQUEST_NULL || is_stopped(stop);
        MPI_Allreduce(&mine, &over, 1, MPI_INT, MPI_MIN, own);
    }
    free(out);
    free(in);
    return got;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 || (strcmp(argv[1], "ring") && strcmp(argv[1], "allreduce")) ||
        (strcmp(argv[2], "incast") && strcmp(argv[2], "alltoall") && strcmp(argv[2], "none")))
        fail("usage: congestion ring|allreduce incast|alltoall|none BYTES SECONDS");
    if (ranks < 4 || ranks % 2)
        fail("an even number of ranks from 4 on is needed");
    int bytes = atoi(argv[3]);
    double seconds = atof(argv[4]);
    if (bytes < 1 || seconds <= 0)
        fail("BYTES and SECONDS are above 0");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &own);
    MPI_Comm_rank(own, &own_rank);
    MPI_Comm_size(own, &own_ranks);
    long messages = 0, all_messages = 0;
    double begin = 0;
    if (rank % 2) {
        MPI_Request stop;
        char *buffer = calloc(1, bytes);
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, STOP, MPI_COMM_WORLD, &stop);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!strcmp(argv[2], "incast"))
            messages = incast(buffer, bytes, &stop);
        else if (!strcmp(argv[2], "alltoall"))
            messages = alltoall(bytes, &stop);
        else
            MPI_Wait(&stop, MPI_STATUS_IGNORE);
        free(buffer);
    } else {
        void (*operation)(void) = strcmp(argv[1], "ring") ? allreduce : ring;
        if (!rank)
            printf("congestion: %d victims of %s, %d congestors by %s, messages of %d bytes, %.3f s\n", own_ranks, argv[1],
                   ranks - own_ranks, argv[2], bytes, seconds);
        for (int i = 0; i < TURNS; i++)
            operation(); /* connections are made by then */
        measure("alone", operation, seconds);
        begin = MPI_Wtime();
        if (!rank)
            tell(GO);
        measure("loaded", operation, seconds);
        if (!rank)
            tell(STOP);
    }
    MPI_Reduce(&messages, &all_messages, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("flood %.6e B/s\nend of congestion\n", (double)all_messages * bytes / (MPI_Wtime() - begin));
    MPI_Finalize();
    return 0;
}
