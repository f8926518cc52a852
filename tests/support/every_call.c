/* Three ranks that send something by every call that is counted; test_payload.py knows how much. */
#include <mpi.h>
#include <stdlib.h>

static int rank;
static double in[64], out[64];

/* Rank 1 receives, before or after rank 0 sends: a ready send needs it to be before. */
#define FROM_0_TO_1(bytes, send)                                                                  \
    do {                                                                                          \
        MPI_Request receiving;                                                                    \
        if (rank == 1)                                                                            \
            MPI_Irecv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &receiving);                     \
        MPI_Barrier(MPI_COMM_WORLD);                                                              \
        if (rank == 0)                                                                            \
            send;                                                                                 \
        if (rank == 1)                                                                            \
            MPI_Wait(&receiving, MPI_STATUS_IGNORE);                                              \
    } while (0)
#define TO_1 MPI_BYTE, 1, 0, MPI_COMM_WORLD
#define COMPLETED(call)                                                                           \
    do {                                                                                          \
        MPI_Request sending;                                                                      \
        call;                                                                                     \
        MPI_Wait(&sending, MPI_STATUS_IGNORE);                                                    \
    } while (0)

static void one_to_one(void)
{
    static char buffer[4096];
    int size = sizeof buffer, next = (rank + 1) % 3, last = (rank + 2) % 3;
    MPI_Datatype strided;
    MPI_Buffer_attach(buffer, size);
    FROM_0_TO_1(0, MPI_Send(out, 0, TO_1));
    FROM_0_TO_1(5, MPI_Send(out, 5, TO_1));
    FROM_0_TO_1(100, MPI_Bsend(out, 100, TO_1));
    FROM_0_TO_1(8, MPI_Ssend(out, 8, TO_1));
    FROM_0_TO_1(16, MPI_Rsend(out, 16, TO_1));
    FROM_0_TO_1(32, COMPLETED(MPI_Isend(out, 32, TO_1, &sending)));
    FROM_0_TO_1(33, COMPLETED(MPI_Ibsend(out, 33, TO_1, &sending)));
    FROM_0_TO_1(64, COMPLETED(MPI_Issend(out, 64, TO_1, &sending)));
    FROM_0_TO_1(128, COMPLETED(MPI_Irsend(out, 128, TO_1, &sending)));
    MPI_Type_vector(3, 1, 5, MPI_DOUBLE, &strided); /* 24 bytes, spread over 88 */
    MPI_Type_commit(&strided);
    FROM_0_TO_1(24, MPI_Send(out, 1, strided, 1, 0, MPI_COMM_WORLD));
    MPI_Type_free(&strided);
    MPI_Send(out, 8, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* is no message */
    MPI_Sendrecv(out, 3, MPI_INT, next, 0, in, 3, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 7, MPI_INT, next, 0, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(buffer, &size);
}

static void collective(void)
{
    const int counts[3] = {1, 2, 3}, starts[3] = {0, 1, 3}, mine[3] = {rank + 1, rank + 1, rank + 1};
    const int places[3] = {0, 10, 20}, bytes[3] = {0, 80, 160};
    const MPI_Datatype types[3] = {MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE};
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Bcast(out, 10, MPI_DOUBLE, 1, world);
    MPI_Reduce(out, in, 4, MPI_DOUBLE, MPI_SUM, 0, world);
    MPI_Allreduce(MPI_IN_PLACE, in, 2, MPI_DOUBLE, MPI_SUM, world);
    MPI_Scan(out, in, 3, MPI_DOUBLE, MPI_SUM, world);
    MPI_Exscan(out, in, 5, MPI_DOUBLE, MPI_SUM, world);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, world);
    MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, world);
    MPI_Gather(rank == 2 ? MPI_IN_PLACE : out, 5, MPI_INT, in, 5, MPI_INT, 2, world);
    MPI_Gatherv(rank == 2 ? MPI_IN_PLACE : out, rank + 1, MPI_INT, in, counts, starts, MPI_INT, 2, world);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, MPI_INT, world);
    MPI_Allgatherv(out, rank + 1, MPI_INT, in, counts, starts, MPI_INT, world);
    MPI_Scatter(out, 2, MPI_INT, in, 2, MPI_INT, 0, world);
    MPI_Scatterv(out, counts, starts, MPI_INT, in, 3, MPI_INT, 0, world);
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, world);
    MPI_Alltoallv(out, counts, starts, MPI_INT, in, mine, places, MPI_INT, world);
    MPI_Alltoallw(out, counts, bytes, types, in, mine, bytes, types, world);
}

int main(int argc, char **argv)
{
    int threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    one_to_one();
    collective();
    if (argc > 1)
        exit(3); /* without MPI_Finalize */
    MPI_Finalize();
    return 0;
}
