/* For test_recorder.py: each call that is recorded and moves data, in place, too, and some that make communicators. */
#include <mpi.h>
static char out[4000000], in[4000000];

int main(int argc, char **argv)
{
    int rank, ranks, flag = 0, index;
    MPI_Comm other, half;
    MPI_Datatype pair;
    MPI_Request requests[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_split(other, rank % 2, -rank, &half);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

    MPI_Sendrecv(out, 10, pair, to, 1, in, 20, pair, from, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 20000, MPI_CHAR, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 20000, MPI_CHAR, from, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(in + 20000, 64, MPI_CHAR, rank, 3, MPI_COMM_WORLD, &requests[2]);
    MPI_Issend(out, 64, MPI_CHAR, rank, 3, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
    MPI_Isend(out, 30, MPI_CHAR, to, 4, other, &requests[0]);
    MPI_Request_free(&requests[0]);
    MPI_Recv(in, 30, MPI_CHAR, from, 4, other, MPI_STATUS_IGNORE);
    MPI_Send(out, 30, MPI_CHAR, MPI_PROC_NULL, 4, other);

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(out, 100, pair, ranks - 1, other);
    MPI_Reduce(out, in, 101, MPI_DOUBLE, MPI_SUM, 1, other);
    MPI_Allreduce(MPI_IN_PLACE, in, 102, MPI_DOUBLE, MPI_SUM, other);
    MPI_Gather(out, 30, MPI_CHAR, in, 30, MPI_CHAR, 1, MPI_COMM_WORLD);
    MPI_Scatter(out, 31, MPI_CHAR, in, 31, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Allgather(out, 1, pair, in, 16, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, pair, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 6, pair, MPI_COMM_WORLD);
    MPI_Alltoall(out, 7000, MPI_CHAR, in, 7000, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Alltoall(out, 300000, MPI_CHAR, in, 300000, MPI_CHAR, MPI_COMM_WORLD); /* large */
    MPI_Allreduce(MPI_IN_PLACE, in, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    MPI_Comm_free(&half);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
