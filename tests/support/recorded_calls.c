/* For test_programs.py: messages within halves of the ranks in reverse order. */
#include <mpi.h>
#include <time.h>
static void compute(double seconds)
{
    for (clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;) {}
}
int main(int argc, char **argv)
{
    int rank, ranks, flag = 0, one = 1, sum;
    char data[3000], other[3000];
    MPI_Comm half;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    compute(0.05 * (rank + 1));
    MPI_Irecv(data, 3000, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, half, &requests[0]);
    MPI_Isend(other, 2000 + rank, MPI_CHAR, 0 == rank / 2 ? 0 : 1, 7, half, &requests[1]);
    while (!flag)
        MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != ranks;
}
