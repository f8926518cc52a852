/* For test_recorder.py: exchanges that a replay cannot do, by the program's argument; without one nothing but MPI_Allreduce. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static int ranks, data[64], other[64];
static MPI_Comm ring;

/* Waits in MPI for what the rank's other thread sends. */
static void *receive(void *comm)
{
    MPI_Recv(other, 1, MPI_INT, MPI_ANY_SOURCE, 5, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    return NULL;
}

static int is(const char *name, int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], name);
}

int main(int argc, char **argv)
{
    int level, sum, one = 1, yes = 1;
    MPI_Request request;
    MPI_Init_thread(&argc, &argv, is("threads", argc, argv) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &yes, 0, &ring);
    if (is("neighbours", argc, argv)) {
        MPI_Ineighbor_alltoall(data, 1, MPI_INT, other, 1, MPI_INT, ring, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (is("one-sided", argc, argv)) {
        MPI_Win window;
        MPI_Win_create(data, sizeof data, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_fence(0, window);
        MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
    }
    if (is("file", argc, argv)) {
        MPI_File file;
        MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        MPI_File_close(&file);
    }
    if (is("threads", argc, argv)) {
        pthread_t thread;
        int rank;
        MPI_Comm_rank(ring, &rank);
        pthread_create(&thread, NULL, receive, &ring);
        usleep(300000);
        MPI_Send(data, 1, MPI_INT, rank, 5, ring);
        pthread_join(thread, NULL);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (is("aborts", argc, argv))
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (is("crashes", argc, argv))
        raise(SIGSEGV);
    MPI_Finalize();
    return is("fails", argc, argv) ? 3 : 0;
}
