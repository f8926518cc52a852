/* For test_replay.py and test_program.py: so many times each rank computes, by the clock of its processor time,
 * and exchanges BYTES with its partner (`pairs`) or with every other rank (`alltoall`, `alltoallw`: the same exchange).
 * The first rank says how long it took by the clock of MPI.
 *
 *   exchanges KIND TIMES SECONDS BYTES */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void compute(double seconds)
{
    struct timespec now, begun;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((double)(now.tv_sec - begun.tv_sec) + 1e-9 * (double)(now.tv_nsec - begun.tv_nsec) < seconds);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    signal(SIGXCPU, SIG_DFL); /* the runtime of Fortran, too, takes this signal for itself */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *kind = argv[1];
    int times = atoi(argv[2]), bytes = atoi(argv[4]);
    double seconds = atof(argv[3]);
    char *out = calloc((size_t)ranks, (size_t)bytes), *in = malloc((size_t)ranks * (size_t)bytes);
    int *counts = malloc((size_t)ranks * sizeof *counts), *places = malloc((size_t)ranks * sizeof *places);
    MPI_Datatype *types = malloc((size_t)ranks * sizeof *types);
    for (int i = 0; i < ranks; i++)
        counts[i] = bytes, places[i] = i * bytes, types[i] = MPI_BYTE;
    double begun = MPI_Wtime();
    for (int i = 0; i < times; i++) {
        compute(seconds);
        if (!strcmp(kind, "pairs"))
            MPI_Sendrecv(out, bytes, MPI_BYTE, rank ^ 1, 1, in, bytes, MPI_BYTE, rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (!strcmp(kind, "alltoall"))
            MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        else
            MPI_Alltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("took %.6f s\n", MPI_Wtime() - begun);
    MPI_Finalize();
    return 0;
}
