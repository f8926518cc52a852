/*
 * The recorder's functions for collectives of neighbours; see record.c. They are recorded as the messages that they are:
 * with the tag of no program, by which recorder.py counts them among the collectives' bytes.
 */
enum { OF_NEIGHBOURS = -1, NOT_MONITORED = -2 };

struct neighbours {
    int sources, targets, *from, *to;
};

/* In the order of MPI 3.1, section 7.6: of a Cartesian communicator down and up in each dimension. */
static struct neighbours neighbours_in(MPI_Comm comm)
{
    struct neighbours all = {0, 0, NULL, NULL};
    int kind, is_weighted, rank = rank_in(comm);
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &all.sources, &all.targets, &is_weighted);
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, rank, &all.sources);
        all.targets = all.sources;
    } else if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &all.sources);
        all.targets = all.sources *= 2;
    }
    all.from = or_end(malloc((size_t)all.sources * sizeof(int) + 1));
    all.to = or_end(malloc((size_t)all.targets * sizeof(int) + 1));
    if (kind == MPI_DIST_GRAPH) {
        int *weights = or_end(malloc((size_t)(all.sources + all.targets) * sizeof(int) + 1));
        PMPI_Dist_graph_neighbors(comm, all.sources, all.from, weights, all.targets, all.to, weights + all.sources);
        free(weights);
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors(comm, rank, all.sources, all.from);
        memcpy(all.to, all.from, (size_t)all.sources * sizeof(int));
    } else {
        for (int i = 0; i < all.sources / 2; i++)
            PMPI_Cart_shift(comm, i, 1, &all.from[2 * i], &all.from[2 * i + 1]);
        memcpy(all.to, all.from, (size_t)all.sources * sizeof(int));
    }
    return all;
}

/* The parts of a buffer, one for each neighbour. */
struct side {
    char *at;
    int is_one;                     /* the same part for each */
    int count;
    const int *counts, *starts;     /* NULL: `count` for each, one behind the other */
    MPI_Datatype type;
    const MPI_Aint *places;         /* [B], with types; else NULL */
    const MPI_Datatype *types;
};

static MPI_Datatype type_in(struct side side, int i)
{
    return side.types ? side.types[i] : side.type;
}

static int count_in(struct side side, int i)
{
    return side.counts ? side.counts[i] : side.count;
}

static char *part_in(struct side side, int i)
{
    MPI_Aint least, extent;
    if (side.places)
        return side.at + side.places[i];
    PMPI_Type_get_extent(side.type, &least, &extent);
    if (side.starts)
        return side.at + side.starts[i] * extent;
    return side.at + (side.is_one ? 0 : i * side.count * extent);
}

/* Open MPI 4's monitoring takes every such communicator for a Cartesian one, and crashes: with others, the messages are
   sent here, on a communicator of our own, and not monitored. */
static int exchange(MPI_Comm own, struct neighbours all, struct side out, struct side in)
{
    int code = MPI_SUCCESS, before = set_monitoring(0);
    MPI_Request *handles = or_end(malloc((size_t)(all.sources + all.targets) * sizeof *handles + 1));
    for (int i = 0; i < all.sources && code == MPI_SUCCESS; i++)
        code = PMPI_Irecv(part_in(in, i), count_in(in, i), type_in(in, i), all.from[i], 0, own, &handles[i]);
    for (int i = 0; i < all.targets && code == MPI_SUCCESS; i++)
        code = PMPI_Isend(part_in(out, i), count_in(out, i), type_in(out, i), all.to[i], 0, own, &handles[all.sources + i]);
    if (code == MPI_SUCCESS)
        code = PMPI_Waitall(all.sources + all.targets, handles, MPI_STATUSES_IGNORE);
    free(handles);
    set_monitoring(before);
    return code;
}

static double bytes_in(struct side side, int i)
{
    return bytes_of(count_in(side, i), type_in(side, i));
}

/* Whether the messages were sent here, with what code. */
static int exchanged(MPI_Comm comm, struct side out, struct side in, int *code)
{
    double seconds = enter();
    struct neighbours all = neighbours_in(comm);
    MPI_Comm own = communicator(comm)->own;
    int label = label_of(comm), first = request_number + 1, tag = own == MPI_COMM_NULL ? OF_NEIGHBOURS : NOT_MONITORED;
    for (int i = 0; i < all.sources; i++)
        if (all.from[i] != MPI_PROC_NULL) {
            say(next(seconds), "irecv %d %d %d %d %.0f", ++request_number, in_world(comm, all.from[i]), label, tag,
                bytes_in(in, i));
            seconds = 0.0;
        }
    for (int i = 0; i < all.targets; i++)
        if (all.to[i] != MPI_PROC_NULL) {
            say(next(seconds), "isend %d %d %d %d %.0f", ++request_number, in_world(comm, all.to[i]), label, tag,
                bytes_in(out, i));
            seconds = 0.0;
        }
    nothing(seconds);
    for (int number = first; number <= request_number; number++)
        say(next(0.0), "wait %d", number);
    if (own != MPI_COMM_NULL)
        *code = exchange(own, all, out, in);
    free(all.from);
    free(all.to);
    return own != MPI_COMM_NULL;
}

#define NEIGHBOURS(name, parameters, arguments, out_side, in_side)                                        \
    static int recorded_MPI_Neighbor_##name parameters                                                    \
    {                                                                                                     \
        int own_code;                                                                                     \
        if (exchanged(comm, out_side, in_side, &own_code)) {                                              \
            DONE(own_code);                                                                               \
        }                                                                                                 \
        DONE(PMPI_Neighbor_##name arguments);                                                             \
    }
#define ONE(buffer, number, kind) ((struct side){.at = (char *)buffer, .is_one = 1, .count = number, .type = kind})
#define ALIKE(buffer, number, kind) ((struct side){.at = (char *)buffer, .count = number, .type = kind})
#define APART(buffer, numbers, begins, kind)                                                              \
    ((struct side){.at = (char *)buffer, .counts = numbers, .starts = begins, .type = kind})
#define TYPED(buffer, numbers, begins, kinds)                                                             \
    ((struct side){.at = (char *)buffer, .counts = numbers, .places = begins, .types = kinds})

NEIGHBOURS(allgather,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, comm), ONE(out, out_count, out_type), ALIKE(in, in_count, in_type))
NEIGHBOURS(allgatherv,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[], const int begins[],
            MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, begins, in_type, comm), ONE(out, out_count, out_type),
           APART(in, in_counts, begins, in_type))
NEIGHBOURS(alltoall,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, comm), ALIKE(out, out_count, out_type), ALIKE(in, in_count, in_type))
NEIGHBOURS(alltoallv,
           (const void *out, const int out_counts[], const int out_begins[], MPI_Datatype out_type, void *in,
            const int in_counts[], const int in_begins[], MPI_Datatype in_type, MPI_Comm comm),
           (out, out_counts, out_begins, out_type, in, in_counts, in_begins, in_type, comm),
           APART(out, out_counts, out_begins, out_type), APART(in, in_counts, in_begins, in_type))
NEIGHBOURS(alltoallw,
           (const void *out, const int out_counts[], const MPI_Aint out_begins[], const MPI_Datatype out_types[], void *in,
            const int in_counts[], const MPI_Aint in_begins[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, out_counts, out_begins, out_types, in, in_counts, in_begins, in_types, comm),
           TYPED(out, out_counts, out_begins, out_types), TYPED(in, in_counts, in_begins, in_types))
