/*
 * The recorder's functions for collectives; see record.c. With MPI_IN_PLACE a rank's part is described by what it
 * receives. Open MPI's monitoring reads what MPI_IN_PLACE makes meaningless, so it is given the same.
 */
#define UNPACK(...) __VA_ARGS__

/* The bytes of parts, one for each rank. */
struct parts {
    int count;
    double *bytes;
};

static const struct parts whole;

static void add_parts(struct parts *parts, int ranks, const int counts[], const MPI_Datatype types[], int types_apart)
{
    parts->bytes = or_end(realloc(parts->bytes, (size_t)(parts->count + ranks) * sizeof *parts->bytes));
    for (int rank = 0; rank < ranks; rank++)
        parts->bytes[parts->count++] = bytes_of(counts[rank], types[types_apart ? rank : 0]);
}

static struct parts parts_of(MPI_Comm comm, const int counts[], MPI_Datatype type)
{
    struct parts parts = {0, NULL};
    add_parts(&parts, ranks_in(comm), counts, &type, 0);
    return parts;
}

static struct parts at_root(MPI_Comm comm, int root, const int counts[], MPI_Datatype type)
{
    return rank_in(comm) == root ? parts_of(comm, counts, type) : whole;
}

static struct parts two_ways(MPI_Comm comm, const int out[], const MPI_Datatype out_types[], const int in[],
                             const MPI_Datatype in_types[], int types_apart)
{
    struct parts parts = {0, NULL};
    add_parts(&parts, ranks_in(comm), out, out_types, types_apart);
    add_parts(&parts, ranks_in(comm), in, in_types, types_apart);
    return parts;
}

static double sum_of(struct parts parts, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count && i < parts.count; i++)
        sum += parts.bytes[i];
    return sum;
}

static void put_collective(struct line *line, struct parts parts, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_collective(struct line *line, struct parts parts, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    put(line, text_of(parts.count, parts.bytes, format, words));
    va_end(words);
    free(parts.bytes);
}

/* One of a single rank moves nothing. Of a non-blocking one the number of its request, 0 for none. */
static int took_part(const char *name, int is_blocking, MPI_Comm comm, double bytes, int root, struct parts parts)
{
    double seconds = enter();
    if (ranks_in(comm) == 1) {
        nothing(seconds);
        free(parts.bytes);
        return 0;
    }
    struct line *line = next(seconds);
    if (is_blocking) {
        put_collective(line, parts, "%s %d %.0f %d", name, label_of(comm), bytes, root);
        return 0;
    }
    int number = ++request_number;
    put_collective(line, parts, "i%s %d %d %.0f %d", name, number, label_of(comm), bytes, root);
    return number;
}

static void under_way(int number, MPI_Request request)
{
    if (number) {
        begun(request, 0, 0, MPI_COMM_NULL, MPI_BYTE);
        requests[request_count - 1].number = number;
    }
}

/* The blocking and the non-blocking function. `ready` is done first; bytes are those that the rank puts in. */
#define COLLECTIVE(name, i_name, word, parameters, arguments, ready, bytes, root, parts)                  \
    static int recorded_MPI_##name(UNPACK parameters)                                                     \
    {                                                                                                     \
        ready;                                                                                            \
        took_part(word, 1, comm, bytes, root, parts);                                                     \
        DONE(PMPI_##name(UNPACK arguments));                                                              \
    }                                                                                                     \
    static int recorded_MPI_##i_name(UNPACK parameters, MPI_Request *request)                             \
    {                                                                                                     \
        ready;                                                                                            \
        int number = took_part(word, 0, comm, bytes, root, parts);                                        \
        int code = PMPI_##i_name(UNPACK arguments, request);                                              \
        under_way(number, *request);                                                                      \
        leave();                                                                                          \
        return code;                                                                                      \
    }

COLLECTIVE(Barrier, Ibarrier, "barrier", (MPI_Comm comm), (comm), , 0.0, 0, whole)
COLLECTIVE(Bcast, Ibcast, "bcast", (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm), , bytes_of(count, type), in_world(comm, root), whole)
COLLECTIVE(Reduce, Ireduce, "reduce",
           (const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (out, in, count, type, op, root, comm), , bytes_of(count, type), in_world(comm, root), whole)
#define REDUCING(name, i_name, word)                                                                      \
    COLLECTIVE(name, i_name, word, (const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
               (out, in, count, type, op, comm), , bytes_of(count, type), 0, whole)
REDUCING(Allreduce, Iallreduce, "allreduce")
REDUCING(Scan, Iscan, "scan")
REDUCING(Exscan, Iexscan, "exscan")
/* `bytes` are those of one part. */
REDUCING(Reduce_scatter_block, Ireduce_scatter_block, "reduce_scatter_block")
COLLECTIVE(Reduce_scatter, Ireduce_scatter, "reduce_scatter",
           (const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (out, in, counts, type, op, comm), struct parts parts = parts_of(comm, counts, type),
           sum_of(parts, parts.count), 0, parts)

/* A part for each rank, all of the same size. */
#define SAME_PARTS                                                                                        \
    (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type, MPI_Comm comm)
#define SAME_PARTS_OF_ROOT                                                                                \
    (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
#define IN_PLACE_AS_IN                                                                                    \
    if (out == MPI_IN_PLACE) {                                                                            \
        out_count = in_count;                                                                             \
        out_type = in_type;                                                                               \
    }
COLLECTIVE(Gather, Igather, "gather", SAME_PARTS_OF_ROOT, (out, out_count, out_type, in, in_count, in_type, root, comm), ,
           (out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : bytes_of(out_count, out_type)), in_world(comm, root), whole)
COLLECTIVE(Scatter, Iscatter, "scatter", SAME_PARTS_OF_ROOT, (out, out_count, out_type, in, in_count, in_type, root, comm), ,
           (in == MPI_IN_PLACE ? bytes_of(out_count, out_type) : bytes_of(in_count, in_type)), in_world(comm, root), whole)
COLLECTIVE(Allgather, Iallgather, "allgather", SAME_PARTS, (out, out_count, out_type, in, in_count, in_type, comm),
           IN_PLACE_AS_IN, bytes_of(out_count, out_type), 0, whole)
COLLECTIVE(Alltoall, Ialltoall, "alltoall", SAME_PARTS, (out, out_count, out_type, in, in_count, in_type, comm),
           IN_PLACE_AS_IN, bytes_of(out_count, out_type), 0, whole)

/* Parts of different sizes: what each rank gets or gives, where this rank knows it. */
COLLECTIVE(Gatherv, Igatherv, "gatherv",
           (const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[], const int starts[],
            MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, starts, in_type, root, comm), ,
           (out == MPI_IN_PLACE ? bytes_of(in_counts[rank_in(comm)], in_type) : bytes_of(out_count, out_type)),
           in_world(comm, root), at_root(comm, root, in_counts, in_type))
COLLECTIVE(Scatterv, Iscatterv, "scatterv",
           (const void *out, const int out_counts[], const int starts[], MPI_Datatype out_type, void *in, int in_count,
            MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_counts, starts, out_type, in, in_count, in_type, root, comm), ,
           (in == MPI_IN_PLACE ? bytes_of(out_counts[rank_in(comm)], out_type) : bytes_of(in_count, in_type)),
           in_world(comm, root), at_root(comm, root, out_counts, out_type))
COLLECTIVE(Allgatherv, Iallgatherv, "allgatherv",
           (const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[], const int starts[],
            MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, starts, in_type, comm),
           if (out == MPI_IN_PLACE) { out_count = in_counts[rank_in(comm)]; out_type = in_type; },
           bytes_of(out_count, out_type), 0, parts_of(comm, in_counts, in_type))
COLLECTIVE(Alltoallv, Ialltoallv, "alltoallv",
           (const void *out, const int out_counts[], const int out_starts[], MPI_Datatype out_type, void *in,
            const int in_counts[], const int in_starts[], MPI_Datatype in_type, MPI_Comm comm),
           (out, out_counts, out_starts, out_type, in, in_counts, in_starts, in_type, comm),
           if (out == MPI_IN_PLACE) { out_counts = in_counts; out_starts = in_starts; out_type = in_type; }
           struct parts parts = two_ways(comm, out_counts, &out_type, in_counts, &in_type, 0),
           sum_of(parts, parts.count / 2), 0, parts)
COLLECTIVE(Alltoallw, Ialltoallw, "alltoallw",
           (const void *out, const int out_counts[], const int out_starts[], const MPI_Datatype out_types[], void *in,
            const int in_counts[], const int in_starts[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, out_counts, out_starts, out_types, in, in_counts, in_starts, in_types, comm),
           if (out == MPI_IN_PLACE) { out_counts = in_counts; out_starts = in_starts; out_types = in_types; }
           struct parts parts = two_ways(comm, out_counts, out_types, in_counts, in_types, 1),
           sum_of(parts, parts.count / 2), 0, parts)
