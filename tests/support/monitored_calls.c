/*
 * For test_recorder.py and test_replay.py: each call that is recorded and moves data, blocking and not, in place, of all
 * ranks, of some and of all in another order; and all that make communicators. With an argument only the first part.
 */
#include <mpi.h>
#include <stdlib.h>
enum { MOST = 4000000, RANKS = 4 };
static char out[MOST], in[MOST];
static MPI_Datatype pair;

static void messages(MPI_Comm other, int rank, int ranks)
{
    int flag = 0, index, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    MPI_Request requests[4];
    MPI_Message message;
    MPI_Status status;

    MPI_Sendrecv(out, 10, pair, to, 1, in, 20, pair, from, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 77, MPI_CHAR, to, 1, from, 1, other, MPI_STATUS_IGNORE);
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

    MPI_Send_init(out, 500, MPI_CHAR, to, 5, other, &requests[0]);
    MPI_Recv_init(in, 600, MPI_CHAR, from, 5, other, &requests[1]);
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            MPI_Start(&requests[1]);
            MPI_Start(&requests[0]);
        } else {
            MPI_Startall(2, requests);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    MPI_Isend(out, 44, MPI_CHAR, to, 6, other, &requests[0]);
    MPI_Isend(out, 45, MPI_CHAR, to, 7, other, &requests[1]);
    MPI_Mprobe(from, 6, other, &message, &status);
    MPI_Mrecv(in, 100, MPI_CHAR, &message, &status);
    for (flag = 0; !flag;)
        MPI_Improbe(MPI_ANY_SOURCE, 7, other, &flag, &message, &status);
    MPI_Imrecv(in, 100, MPI_CHAR, &message, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 8, MPI_CHAR, from, 8, other, &requests[0]); /* which never comes */
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void collectives(MPI_Comm comm)
{
    int rank, ranks, counts[RANKS], starts[RANKS], mine[RANKS], places[RANKS], in_counts[RANKS], byte_places[RANKS], in_places[RANKS];
    MPI_Datatype types[RANKS];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < ranks; i++) {
        counts[i] = 100 * (i + 1), starts[i] = 1000 * i;
        mine[i] = 100 * (rank + 1), places[i] = 1000 * i;       /* parts of an exchange: alike for all receivers */
        in_counts[i] = 100 * (i + 1), in_places[i] = 1000 * i;
        byte_places[i] = 16000 * i, types[i] = pair;
    }
    MPI_Barrier(comm);
    MPI_Bcast(out, 100, pair, ranks - 1, comm);
    MPI_Reduce(out, in, 101, MPI_DOUBLE, MPI_SUM, ranks - 1, comm);
    MPI_Allreduce(MPI_IN_PLACE, in, 102, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Scan(out, in, 103, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Exscan(out, in, 104, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Reduce_scatter_block(out, in, 105, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Gather(out, 30, MPI_CHAR, in, 30, MPI_CHAR, ranks - 1, comm);
    MPI_Gatherv(out, counts[rank], pair, in, counts, starts, pair, ranks - 1, comm);
    MPI_Scatter(out, 31, MPI_CHAR, in, 31, MPI_CHAR, 0, comm);
    MPI_Scatterv(out, counts, starts, pair, in, counts[rank], pair, 0, comm);
    MPI_Allgather(out, 1, pair, in, 16, MPI_CHAR, comm);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, pair, comm);
    MPI_Allgatherv(out, counts[rank], pair, in, counts, starts, pair, comm);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, starts, pair, comm);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 6, pair, comm);
    MPI_Alltoall(out, 7000, MPI_CHAR, in, 7000, MPI_CHAR, comm);
    MPI_Alltoall(out, 300000, MPI_CHAR, in, 300000, MPI_CHAR, comm); /* large */
    MPI_Alltoallv(out, mine, places, MPI_CHAR, in, in_counts, in_places, MPI_CHAR, comm);
    MPI_Alltoallw(out, mine, byte_places, types, in, in_counts, byte_places, types, comm);
}

static void non_blocking(MPI_Comm comm)
{
    int rank, ranks, counts[RANKS], starts[RANKS], mine[RANKS], byte_places[RANKS];
    MPI_Datatype types[RANKS];
    MPI_Request all[18];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < ranks; i++)
        counts[i] = 100 * (i + 1), starts[i] = 1000 * i, mine[i] = 100 * (rank + 1), byte_places[i] = 16000 * i, types[i] = pair;
    MPI_Ibarrier(comm, &all[0]);
    MPI_Ibcast(out, 200, pair, ranks - 1, comm, &all[1]);
    MPI_Wait(&all[1], MPI_STATUS_IGNORE);
    MPI_Ireduce(out, in, 201, MPI_DOUBLE, MPI_SUM, ranks - 1, comm, &all[1]);
    MPI_Iallreduce(out, in + 100000, 202, MPI_DOUBLE, MPI_SUM, comm, &all[2]);
    MPI_Iscan(out, in + 200000, 203, MPI_DOUBLE, MPI_SUM, comm, &all[3]);
    MPI_Iexscan(out, in + 300000, 204, MPI_DOUBLE, MPI_SUM, comm, &all[4]);
    MPI_Ireduce_scatter(out, in + 400000, counts, MPI_DOUBLE, MPI_SUM, comm, &all[5]);
    MPI_Ireduce_scatter_block(out, in + 500000, 205, MPI_DOUBLE, MPI_SUM, comm, &all[6]);
    MPI_Igather(out, 206, MPI_CHAR, in + 600000, 206, MPI_CHAR, ranks - 1, comm, &all[7]);
    MPI_Igatherv(out, counts[rank], pair, in + 700000, counts, starts, pair, ranks - 1, comm, &all[8]);
    MPI_Iscatter(out, 207, MPI_CHAR, in + 800000, 207, MPI_CHAR, 0, comm, &all[9]);
    MPI_Iscatterv(out, counts, starts, pair, in + 900000, counts[rank], pair, 0, comm, &all[10]);
    MPI_Iallgather(out, 2, pair, in + 1000000, 2, pair, comm, &all[11]);
    MPI_Iallgatherv(out, counts[rank], pair, in + 1100000, counts, starts, pair, comm, &all[12]);
    MPI_Ialltoall(out, 208, MPI_CHAR, in + 1200000, 208, MPI_CHAR, comm, &all[13]);
    MPI_Ialltoallv(out, mine, starts, MPI_CHAR, in + 1300000, counts, starts, MPI_CHAR, comm, &all[14]);
    MPI_Ialltoallw(out, mine, byte_places, types, in + 1400000, counts, byte_places, types, comm, &all[15]);
    MPI_Waitall(16, all, MPI_STATUSES_IGNORE);
}

static void neighbours(MPI_Comm cart, MPI_Comm ring)
{
    int counts[4] = {10, 20, 30, 40}, same[4] = {9, 9, 9, 9}, starts[4] = {0, 1000, 2000, 3000};
    MPI_Aint places[4] = {0, 1000, 2000, 3000};
    MPI_Datatype types[4] = {pair, pair, pair, pair};
    MPI_Neighbor_allgather(out, 11, pair, in, 11, pair, cart);
    MPI_Neighbor_allgatherv(out, 9, pair, in, same, starts, pair, cart);
    MPI_Neighbor_alltoall(out, 13, pair, in, 13, pair, cart);
    MPI_Neighbor_alltoallv(out, counts, starts, pair, in, counts, starts, pair, ring);
    MPI_Neighbor_alltoallw(out, same, places, types, in, same, places, types, ring);
}

int main(int argc, char **argv)
{
    int rank, ranks, dims[2] = {2, 2}, periods[2] = {1, 0}, keep[2] = {1, 0};
    MPI_Comm other, half, turned, cart, column, ring;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    messages(other, rank, ranks);
    collectives(MPI_COMM_WORLD);
    if (argc == 1) {
        int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, weight = 1;
        MPI_Comm_split(other, rank % 2, -rank, &half);
        MPI_Comm_split(other, 0, -rank, &turned);
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
        MPI_Cart_sub(cart, keep, &column);
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &ring);
        collectives(half);
        collectives(turned);
        collectives(column);
        collectives(MPI_COMM_SELF);
        non_blocking(other);
        non_blocking(half);
        neighbours(cart, ring);
        MPI_Comm_free(&half);
    }
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
