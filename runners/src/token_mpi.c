/*
 * Token exchange by MPI (see token.c), the ends of a pair given as ranks:
 *
 * usage: token_mpi BYTES RUNS WARM_UP_S WINDOW_S PRODUCER,CONSUMER...   (with mpirun; ranks count from 0)
 *
 * Ranks in no pair rest. When a rank is lost, mpirun ends the others.
 */
#include "token.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TAG = 1, RESTING_NS = 20000000 };

static int peer;
static MPI_Comm producers = MPI_COMM_NULL;
static MPI_Request others = MPI_REQUEST_NULL;

void send_token(const void *token, size_t bytes)
{
    MPI_Send(token, (int)bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

void receive_token(void *token, size_t bytes)
{
    MPI_Recv(token, (int)bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void await_start(void)
{
    MPI_Barrier(producers);
}

void tell_window_is_over(void)
{
    MPI_Ibarrier(producers, &others);
}

int all_windows_are_over(void)
{
    int all = 0;
    if (others != MPI_REQUEST_NULL)
        MPI_Test(&others, &all, MPI_STATUS_IGNORE);
    return all;
}

/* The first pair's producer prints. */
void hand_in(const char row[ROW])
{
    int self, pairs;
    MPI_Comm_rank(producers, &self);
    MPI_Comm_size(producers, &pairs);
    char *rows = self == 0 ? malloc((size_t)pairs * ROW) : NULL;
    if (self == 0 && !rows)
        fail("no memory for the rows of %d pairs", pairs);
    MPI_Gather(row, ROW, MPI_CHAR, rows, ROW, MPI_CHAR, 0, producers);
    for (int i = 0; self == 0 && i < pairs; i++)
        printf("%.*s", ROW, rows + (size_t)i * ROW);
    free(rows);
}

/* Until all are here; MPI's own barrier would keep a processor busy that others need. */
static void rest(void)
{
    MPI_Request all;
    int here = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (MPI_Test(&all, &here, MPI_STATUS_IGNORE); !here; MPI_Test(&all, &here, MPI_STATUS_IGNORE))
        nanosleep(&(struct timespec){.tv_nsec = RESTING_NS}, NULL);
}

int main(int argc, char **argv)
{
    int rank, ranks, pair = 0, produces = 0, consumes = 0;
    struct settings settings;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int sound = argc > 5 && understood(argv + 1, &settings);
    for (int i = 5; sound && i < argc; i++) {
        int producer, consumer;
        char rest_of_word;
        sound = sscanf(argv[i], "%d,%d%c", &producer, &consumer, &rest_of_word) == 2 && producer != consumer &&
                producer >= 0 && consumer >= 0 && producer < ranks && consumer < ranks;
        if (sound && (rank == producer || rank == consumer)) {
            sound = !pair; /* a rank is in one pair at most */
            pair = i - 4;
            produces = rank == producer;
            consumes = rank == consumer;
            peer = produces ? consumer : producer;
        }
    }
    if (!sound) {
        fprintf(stderr, "usage: token_mpi " SETTINGS_USAGE " PRODUCER,CONSUMER...   (ranks, each in one pair)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_split(MPI_COMM_WORLD, produces ? 0 : MPI_UNDEFINED, pair, &producers);
    if (pair == 1 && produces)
        print_head(argc - 5, &settings, "MPI");
    if (produces)
        produce(pair, &settings);
    if (consumes)
        consume(&settings);
    if (pair == 1 && produces)
        print_end();
    rest();
    MPI_Finalize();
    return 0;
}
