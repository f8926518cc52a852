/*
 * The payload of an MPI program: how many messages of which size every kind of call sends.
 *
 * Sizes fall into classes: 0 bytes, then from each power of two up to the next. All ranks are added
 * together and printed as one table by rank 0, a line for each call and class that has a message.
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>

#define PAYLOAD_CALLS(call)                                                                           \
    call(MPI_Send) call(MPI_Bsend) call(MPI_Ssend) call(MPI_Rsend) call(MPI_Isend) call(MPI_Ibsend)   \
    call(MPI_Issend) call(MPI_Irsend) call(MPI_Sendrecv) call(MPI_Sendrecv_replace)                   \
    call(MPI_Bcast) call(MPI_Reduce) call(MPI_Allreduce) call(MPI_Reduce_scatter)                     \
    call(MPI_Reduce_scatter_block) call(MPI_Scan) call(MPI_Exscan) call(MPI_Gather) call(MPI_Gatherv) \
    call(MPI_Allgather) call(MPI_Allgatherv) call(MPI_Scatter) call(MPI_Scatterv) call(MPI_Alltoall)  \
    call(MPI_Alltoallv) call(MPI_Alltoallw)

enum payload_call {
#define AS_MEMBER(call) PAYLOAD_##call,
    PAYLOAD_CALLS(AS_MEMBER) PAYLOAD_KINDS
};

#define PAYLOAD_CLASSES 33 /* 0 bytes, then 2^0, 2^1 ... 2^31 and more */
#define PAYLOAD_NUMBERS (PAYLOAD_KINDS * PAYLOAD_CLASSES * 2)

/* Messages and bytes; atomic, since a program's threads may send at the same time. */
static _Atomic int64_t payload[PAYLOAD_KINDS][PAYLOAD_CLASSES][2];

static inline void payload_count(enum payload_call call, double bytes)
{
    int class = 0;
    for (int64_t left = (int64_t)bytes; left > 0 && class < PAYLOAD_CLASSES - 1; left /= 2)
        class++;
    payload[call][class][0] += 1;
    payload[call][class][1] += (int64_t)bytes;
}

static inline void payload_print_class(FILE *out, const char *call, int class, const int64_t sent[2])
{
    int64_t least = class == 0 ? 0 : INT64_C(1) << (class - 1);
    fprintf(out, "%-24s %10" PRId64 " ", call, least);
    if (class == PAYLOAD_CLASSES - 1)
        fprintf(out, "%10s", "more");
    else
        fprintf(out, "%10" PRId64, class == 0 ? 0 : 2 * least - 1);
    fprintf(out, " %15" PRId64 " %21" PRId64 "\n", sent[0], sent[1]);
}

/* Collective over all ranks, through the profiling interface: not counted. Only rank 0 needs `out`. */
static inline void payload_print(FILE *out)
{
#define AS_NAME(call) #call,
    static const char *const names[] = {PAYLOAD_CALLS(AS_NAME)};
    static int64_t mine[PAYLOAD_KINDS][PAYLOAD_CLASSES][2], all[PAYLOAD_KINDS][PAYLOAD_CLASSES][2];
    int rank;
    for (int i = 0; i < PAYLOAD_NUMBERS; i++)
        (&mine[0][0][0])[i] = (&payload[0][0][0])[i];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(mine, all, PAYLOAD_NUMBERS, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    fprintf(out, "\nPayload: messages that all ranks sent, by call and size\n");
    fprintf(out, "%-24s %10s %10s %15s %21s\n", "call", "from B", "to B", "messages", "bytes");
    for (int call = 0; call < PAYLOAD_KINDS; call++)
        for (int class = 0; class < PAYLOAD_CLASSES; class++)
            if (all[call][class][0] > 0)
                payload_print_class(out, names[call], class, all[call][class]);
    fprintf(out, "end of payload\n");
    fflush(out);
}

#endif
