/*
 * Counts what an MPI program sends, through MPI's profiling interface, and prints the table of payload.h
 * when the program calls MPI_Finalize: appended to the file that FALLOFF_PAYLOAD names on rank 0, else to its
 * stdout. A program that ends without MPI_Finalize has no table.
 *
 * As a shared library (LD_PRELOAD=payload.so) it serves any program that calls MPI's C functions, with any
 * number of threads. It has to be built with the program's own MPI. Fortran programs are out of its sight
 * where the Fortran interface calls PMPI_ functions, as Open MPI's does: they have no table.
 *
 * What is counted: each send but those to MPI_PROC_NULL; and for each rank in a collective what it puts in,
 * as one message whatever MPI makes of it:
 *   Bcast, Scatter, Scatterv        the root's data, nothing for the others
 *   Gather and Allgather, also v    the rank's own part
 *   Reduce, Allreduce, Scan, Exscan the rank's vector
 *   Reduce_scatter, also _block     the rank's whole vector, before it is parted
 *   Alltoall, also v and w          the parts for all ranks together
 * Not counted: persistent and one-sided communication, non-blocking and neighbourhood collectives, files.
 */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "payload.h"

static double size_of(double count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

static int rank_in(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int ranks_in(MPI_Comm comm)
{
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    return ranks;
}

static double sum_of(const int counts[], MPI_Comm comm)
{
    double sum = 0.0;
    for (int rank = 0; rank < ranks_in(comm); rank++)
        sum += counts[rank];
    return sum;
}

int MPI_Finalize(void)
{
    const char *name = getenv("FALLOFF_PAYLOAD");
    FILE *out = stdout;
    if (name != NULL && *name != '\0' && rank_in(MPI_COMM_WORLD) == 0 && (out = fopen(name, "a")) == NULL) {
        fprintf(stderr, "payload: cannot write %s: %s; the table goes to stdout\n", name, strerror(errno));
        out = stdout;
    }
    payload_print(out);
    if (out != stdout)
        fclose(out);
    return PMPI_Finalize();
}

/* ---- from one rank to another ---- */

static void count_send(enum payload_call call, int count, MPI_Datatype type, int to)
{
    if (to != MPI_PROC_NULL)
        payload_count(call, size_of(count, type));
}

#define BLOCKING(name)                                                                                    \
    int name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)            \
    {                                                                                                     \
        count_send(PAYLOAD_##name, count, type, to);                                                      \
        return P##name(buffer, count, type, to, tag, comm);                                               \
    }
BLOCKING(MPI_Send)
BLOCKING(MPI_Bsend)
BLOCKING(MPI_Ssend)
BLOCKING(MPI_Rsend)

#define NON_BLOCKING(name)                                                                                \
    int name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,            \
             MPI_Request *request)                                                                        \
    {                                                                                                     \
        count_send(PAYLOAD_##name, count, type, to);                                                      \
        return P##name(buffer, count, type, to, tag, comm, request);                                      \
    }
NON_BLOCKING(MPI_Isend)
NON_BLOCKING(MPI_Ibsend)
NON_BLOCKING(MPI_Issend)
NON_BLOCKING(MPI_Irsend)

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                 int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    count_send(PAYLOAD_MPI_Sendrecv, out_count, out_type, to);
    return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
}

int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
                         MPI_Comm comm, MPI_Status *status)
{
    count_send(PAYLOAD_MPI_Sendrecv_replace, count, type, to);
    return PMPI_Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, status);
}

/* ---- collectives: with MPI_IN_PLACE a rank's part is described by what it receives ---- */

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (rank_in(comm) == root)
        payload_count(PAYLOAD_MPI_Bcast, size_of(count, type));
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Reduce, size_of(count, type));
    return PMPI_Reduce(out, in, count, type, op, root, comm);
}

#define REDUCING(name)                                                                                    \
    int name(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)           \
    {                                                                                                     \
        payload_count(PAYLOAD_##name, size_of(count, type));                                              \
        return P##name(out, in, count, type, op, comm);                                                   \
    }
REDUCING(MPI_Allreduce)
REDUCING(MPI_Scan)
REDUCING(MPI_Exscan)

int MPI_Reduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Reduce_scatter, size_of(sum_of(counts, comm), type));
    return PMPI_Reduce_scatter(out, in, counts, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Reduce_scatter_block, size_of((double)count * ranks_in(comm), type));
    return PMPI_Reduce_scatter_block(out, in, count, type, op, comm);
}

int MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
               MPI_Datatype in_type, int root, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Gather,
                  out == MPI_IN_PLACE ? size_of(in_count, in_type) : size_of(out_count, out_type));
    return PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm);
}

int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                const int starts[], MPI_Datatype in_type, int root, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Gatherv, out == MPI_IN_PLACE ? size_of(in_counts[rank_in(comm)], in_type)
                                                           : size_of(out_count, out_type));
    return PMPI_Gatherv(out, out_count, out_type, in, in_counts, starts, in_type, root, comm);
}

int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                  MPI_Datatype in_type, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Allgather,
                  out == MPI_IN_PLACE ? size_of(in_count, in_type) : size_of(out_count, out_type));
    return PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm);
}

int MPI_Allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                   const int starts[], MPI_Datatype in_type, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Allgatherv, out == MPI_IN_PLACE ? size_of(in_counts[rank_in(comm)], in_type)
                                                              : size_of(out_count, out_type));
    return PMPI_Allgatherv(out, out_count, out_type, in, in_counts, starts, in_type, comm);
}

int MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm)
{
    if (rank_in(comm) == root)
        payload_count(PAYLOAD_MPI_Scatter, size_of((double)out_count * ranks_in(comm), out_type));
    return PMPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm);
}

int MPI_Scatterv(const void *out, const int out_counts[], const int starts[], MPI_Datatype out_type, void *in,
                 int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
{
    if (rank_in(comm) == root)
        payload_count(PAYLOAD_MPI_Scatterv, size_of(sum_of(out_counts, comm), out_type));
    return PMPI_Scatterv(out, out_counts, starts, out_type, in, in_count, in_type, root, comm);
}

int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                 MPI_Datatype in_type, MPI_Comm comm)
{
    double part = out == MPI_IN_PLACE ? size_of(in_count, in_type) : size_of(out_count, out_type);
    payload_count(PAYLOAD_MPI_Alltoall, part * ranks_in(comm));
    return PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm);
}

int MPI_Alltoallv(const void *out, const int out_counts[], const int out_starts[], MPI_Datatype out_type,
                  void *in, const int in_counts[], const int in_starts[], MPI_Datatype in_type, MPI_Comm comm)
{
    payload_count(PAYLOAD_MPI_Alltoallv, out == MPI_IN_PLACE ? size_of(sum_of(in_counts, comm), in_type)
                                                             : size_of(sum_of(out_counts, comm), out_type));
    return PMPI_Alltoallv(out, out_counts, out_starts, out_type, in, in_counts, in_starts, in_type, comm);
}

int MPI_Alltoallw(const void *out, const int out_counts[], const int out_starts[], const MPI_Datatype out_types[],
                  void *in, const int in_counts[], const int in_starts[], const MPI_Datatype in_types[],
                  MPI_Comm comm)
{
    const int *counts = out == MPI_IN_PLACE ? in_counts : out_counts;
    const MPI_Datatype *types = out == MPI_IN_PLACE ? in_types : out_types;
    double bytes = 0.0;
    for (int rank = 0; rank < ranks_in(comm); rank++)
        bytes += size_of(counts[rank], types[rank]);
    payload_count(PAYLOAD_MPI_Alltoallw, bytes);
    return PMPI_Alltoallw(out, out_counts, out_starts, out_types, in, in_counts, in_starts, in_types, comm);
}
