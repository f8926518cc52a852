/* Collectives that Open MPI makes of two others: small MPI_Allgatherv, and reductions that may not change the order. */
#include <mpi.h>
#include <stdlib.h>

static void first(void *in, void *out, int *count, MPI_Datatype *type) {
    for (int i = 0; i < *count; i++)
        ((char *)out)[i] = ((char *)in)[i];
}

int main(int argc, char **argv) {
    int rank, ranks, counts[16], places[16], all = 0, bytes = atoi(argv[1]);
    MPI_Op op;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < ranks; i++) {
        counts[i] = bytes * (1 + i % 3);
        places[i] = all;
        all += counts[i];
    }
    char *from = calloc(ranks, all), *to = calloc(ranks, all);
    MPI_Op_create(first, 0, &op);
    for (int i = 0; i < 20; i++) {
        MPI_Allgatherv(from, counts[rank], MPI_CHAR, to, counts, places, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_CHAR, to, counts, places, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Reduce_scatter(from, to, counts, MPI_CHAR, op, MPI_COMM_WORLD);
        MPI_Allreduce(from, to, bytes, MPI_CHAR, op, MPI_COMM_WORLD);
        MPI_Allgather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &half); /* rank 0 is its last */
    MPI_Comm_rank(half, &rank);
    MPI_Allgatherv(from, counts[rank], MPI_CHAR, to, counts, places, MPI_CHAR, half);
    MPI_Finalize();
    return 0;
}
