/*
 * Replays a recorded MPI program on a network that SimGrid's SMPI simulates: each rank makes the calls of its file
 * `rank-N`, and computes between them for as long as the program did. runners/recording/replay_actions.py writes the files and says
 * what is in them. Nothing is computed, and all ranks share the memory of their messages.
 *
 *   c SECONDS                               compute
 *   s, r PARTNER TAG BYTES                  send, receive
 *   i, j REQUEST PARTNER TAG BYTES          start to send, to receive
 *   w REQUEST                               wait
 *   k KIND COMMUNICATOR REQUEST BYTES ROOT PARTS BYTES...   take part in a collective; REQUEST -1: and wait for its end
 *   x                                       the end
 *
 * replay_recorded BANDWIDTH EAGER [COMPUTING]: bytes a second of a link, bytes up to which a message leaves before its
 * receiver is ready, and how many times as long as recorded each rank computes. SimGrid lets all messages under way share a link. Those from one rank to another follow each other, as on a TCP
 * connection: the next is only sent when the last has left by that rate. The sender does not wait for that.
 *
 * At its end each rank says what it computed, when it ended, and the bytes that it sent in messages and by collectives,
 * beside those of the recording; rank 0 says the time of the last.
 */
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rendezvous.h"

/* The order is that of KINDS in replay_actions.py. */
enum kind {
    BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, GATHER, GATHERV, ALLGATHER,
    ALLGATHERV, SCATTER, SCATTERV, ALLTOALL, ALLTOALLV
};

static MPI_Comm *comms;
static int ranks, rank, room;
static MPI_Request *requests;
static MPI_Op ordered;
static char *out, *in;
static double computed, messages, collectives, bandwidth, eager, slower = 1.0;

/* A message that has to wait until those before it have left. */
struct queued {
    double due;
    int partner, tag, bytes;
};

static struct queued *queue;
static int queue_first, queue_end, queue_room;
static double *free_at; /* by partner, when what was sent has left */

static void fail(const char *what)
{
    fprintf(stderr, "replay: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static char *text_of(const char *name)
{
    FILE *file = fopen(name, "r");
    if (!file || fseek(file, 0, SEEK_END))
        fail("its file is missing");
    size_t size = (size_t)ftell(file);
    char *text = malloc(size + 1);
    rewind(file);
    if (!text || fread(text, 1, size, file) != size)
        fail("its file cannot be read");
    text[size] = '\0';
    fclose(file);
    return text;
}

static long number(char **text)
{
    char *end;
    long found = strtol(*text, &end, 10);
    if (end == *text)
        fail("a number is missing in its file");
    *text = end;
    return found;
}

static void make_communicators(void)
{
    char *all = text_of("communicators"), *text = all;
    size_t bytes = (size_t)number(&text);
    long count = number(&text);
    comms = malloc((size_t)count * sizeof *comms);
    for (long i = 0; i < count; i++) {
        int place = MPI_UNDEFINED;
        for (long member = 0, members = number(&text); member < members; member++)
            if (number(&text) == rank)
                place = (int)member;
        if (i)
            MPI_Comm_split(MPI_COMM_WORLD, place == MPI_UNDEFINED ? MPI_UNDEFINED : 1, place == MPI_UNDEFINED ? 0 : place, &comms[i]);
        else
            comms[i] = MPI_COMM_WORLD;
    }
    free(all);
    out = SMPI_SHARED_MALLOC(bytes);
    in = SMPI_SHARED_MALLOC(bytes);
}

/* A moment at which all ranks begin. */
static double together(void)
{
    double now = simgrid_get_clock(), last;
    MPI_Allreduce(&now, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    last += 1.0;
    sg_actor_sleep_for(last - simgrid_get_clock());
    return last;
}

static MPI_Request *request(long place)
{
    while (place >= room) {
        room = room ? 2 * room : 64;
        requests = realloc(requests, (size_t)room * sizeof *requests);
    }
    return &requests[place];
}

static void send_first_queued(void)
{
    struct queued one = queue[queue_first++];
    if (one.due > simgrid_get_clock())
        sg_actor_sleep_for(one.due - simgrid_get_clock());
    MPI_Send(out, one.bytes, MPI_BYTE, one.partner, one.tag, MPI_COMM_WORLD);
}

/* Before a rank waits for anything. */
static void send_queued(void)
{
    while (queue_first < queue_end)
        send_first_queued();
    queue_first = queue_end = 0;
}

static void compute(double seconds)
{
    double end = simgrid_get_clock() + seconds;
    computed += seconds;
    while (queue_first < queue_end && queue[queue_first].due <= end)
        send_first_queued();
    if (end > simgrid_get_clock())
        sg_actor_sleep_for(end - simgrid_get_clock());
}

static void send_eagerly(int partner, int tag, int bytes)
{
    double now = simgrid_get_clock(), due = free_at[partner] > now ? free_at[partner] : now;
    /* They leave in their order, to whomever: a rank has few under way. */
    if (queue_first < queue_end && queue[queue_end - 1].due > due)
        due = queue[queue_end - 1].due;
    free_at[partner] = due + bytes / bandwidth;
    if (due <= now) {
        MPI_Send(out, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
        return;
    }
    if (queue_end == queue_room) {
        queue_room = queue_room ? 2 * queue_room : 64;
        queue = realloc(queue, (size_t)queue_room * sizeof *queue);
    }
    queue[queue_end++] = (struct queued){due, partner, tag, bytes};
}

static void wait_for(long place)
{
    send_queued();
    rendezvous_wait(request(place), MPI_STATUS_IGNORE);
}

static void send_or_receive(char what, char **text)
{
    MPI_Request *one = what == 'i' || what == 'j' ? request(number(text)) : NULL;
    int partner = (int)number(text), tag = (int)number(text), bytes = (int)number(text), sends = what == 's' || what == 'i';
    if (partner != rank && sends)
        messages += bytes;
    if (sends && bytes < eager) {
        if (one)
            *one = MPI_REQUEST_NULL;
        send_eagerly(partner, tag, bytes);
        return;
    }
    if (what != 'j')
        send_queued();
    if (what == 's')
        rendezvous_send(out, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
    else if (what == 'r')
        rendezvous_recv(in, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (what == 'i')
        rendezvous_isend(out, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, one);
    else
        rendezvous_irecv(in, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, one);
}

/* Where the parts begin that lie one behind the other. */
static int *starts_of(const int *parts, int count)
{
    int *starts = malloc((size_t)count * sizeof *starts + 1);
    for (int i = 0, sum = 0; i < count; sum += parts[i++])
        starts[i] = sum;
    return starts;
}

/* As recorded_bytes.py counts. */
static void count_collective(enum kind kind, int size, int me, int bytes, int is_root, const int *parts)
{
    double all = (double)bytes * (size - 1), own = 0.0, of_parts = 0.0;
    int is_rooted = kind == BCAST || kind == REDUCE || kind == GATHER || kind == SCATTER;
    for (int i = 0; i < size && parts; i++) {
        of_parts += parts[i];
        own = i == me ? parts[i] : own;
    }
    if (kind == SCAN || kind == EXSCAN)
        collectives += (double)bytes * (size - 1 - me);
    else if (kind == GATHERV || kind == SCATTERV || kind == ALLTOALLV || kind == REDUCE_SCATTER)
        collectives += of_parts - own;
    else if (!is_rooted || is_root)
        collectives += all;
}

/* The blocking function, or the other that only starts. */
#define EITHER(name, i_name, ...) (is_blocking ? MPI_##name(__VA_ARGS__, comm) : MPI_##i_name(__VA_ARGS__, comm, one))
#define B MPI_BYTE

/*
 * Where elements are fewer than ranks, Open MPI's rings become recursive doubling. A recording has bytes, not elements, and
 * SimGrid takes the ring at its word, which costs twice as much on four ranks. So what is smaller than an element of four
 * bytes for each rank is summed up by an operation that says that its order matters: SimGrid then doubles, too.
 */
#define LEAST_ELEMENT 4

static void in_order(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static MPI_Op operation(int bytes, int size)
{
    return bytes < LEAST_ELEMENT * size ? ordered : MPI_BOR;
}

static void take_part(char **text)
{
    enum kind kind = (enum kind)number(text);
    MPI_Comm comm = comms[number(text)];
    long place = number(text);
    int is_blocking = place < 0 && !rendezvous_is_busy(), size, me, bytes = (int)number(text), root = (int)number(text), count = (int)number(text);
    MPI_Request own = MPI_REQUEST_NULL, *one = place < 0 ? &own : request(place);
    send_queued();
    int *parts = count ? malloc((size_t)count * sizeof *parts) : NULL;
    for (int i = 0; i < count; i++)
        parts[i] = (int)number(text);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    int *starts = starts_of(parts, count < size ? count : size);
    int *later = count == 2 * size ? starts_of(parts + size, size) : NULL;
    count_collective(kind, size, me, bytes, me == root, parts);
    switch (kind) {
    case BARRIER: is_blocking ? MPI_Barrier(comm) : MPI_Ibarrier(comm, one); break;
    case BCAST: EITHER(Bcast, Ibcast, out, bytes, B, root); break;
    case REDUCE: EITHER(Reduce, Ireduce, out, in, bytes, B, MPI_BOR, root); break;
    case ALLREDUCE: EITHER(Allreduce, Iallreduce, out, in, bytes, B, operation(bytes, size)); break;
    case SCAN: EITHER(Scan, Iscan, out, in, bytes, B, MPI_BOR); break;
    case EXSCAN: EITHER(Exscan, Iexscan, out, in, bytes, B, MPI_BOR); break;
    case REDUCE_SCATTER: EITHER(Reduce_scatter, Ireduce_scatter, out, in, parts, B, MPI_BOR); break;
    case REDUCE_SCATTER_BLOCK: EITHER(Reduce_scatter_block, Ireduce_scatter_block, out, in, bytes, B, MPI_BOR); break;
    case GATHER: EITHER(Gather, Igather, out, bytes, B, in, bytes, B, root); break;
    case GATHERV: EITHER(Gatherv, Igatherv, out, bytes, B, in, parts, starts, B, root); break;
    case ALLGATHER: EITHER(Allgather, Iallgather, out, bytes, B, in, bytes, B); break;
    case ALLGATHERV: EITHER(Allgatherv, Iallgatherv, out, bytes, B, in, parts, starts, B); break;
    case SCATTER: EITHER(Scatter, Iscatter, out, bytes, B, in, bytes, B, root); break;
    case SCATTERV: EITHER(Scatterv, Iscatterv, out, parts, starts, B, in, bytes, B, root); break;
    case ALLTOALL: EITHER(Alltoall, Ialltoall, out, bytes, B, in, bytes, B); break;
    case ALLTOALLV: EITHER(Alltoallv, Ialltoallv, out, parts, starts, B, in, parts + size, later, B); break;
    default: fail("a collective in its file is unknown");
    }
    if (place < 0 && !is_blocking)
        rendezvous_wait(one, MPI_STATUS_IGNORE);
    if (place < 0) { /* the other still needs them */
        free(parts);
        free(starts);
        free(later);
        rendezvous_read();
    }
}

int main(int argc, char **argv)
{
    char name[32], *all, *text;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3 || argc > 4 || (argc == 4 && (slower = strtod(argv[3], NULL)) <= 0.0) || (bandwidth = strtod(argv[1], NULL)) <= 0.0)
        fail("usage: replay_recorded BANDWIDTH EAGER [COMPUTING]");
    eager = strtod(argv[2], NULL);
    free_at = calloc((size_t)ranks, sizeof *free_at);
    snprintf(name, sizeof name, "rank-%d", rank);
    text = all = text_of(name);
    double recorded_messages = (double)number(&text), recorded_collectives = (double)number(&text);
    make_communicators();
    MPI_Op_create(in_order, 0, &ordered);
    rendezvous_begin();
    double began = together();
    for (int at_end = 0; !at_end;) {
        while (*text == '\n')
            text++;
        char what = *text++;
        switch (what) {
        case 'c': compute(slower * strtod(text, &text)); break;
        case 's': case 'r': case 'i': case 'j': send_or_receive(what, &text); break;
        case 'w': wait_for(number(&text)); break;
        case 'k': take_part(&text); break;
        case 'x': at_end = 1; break;
        default: fail("an action in its file is unknown");
        }
    }
    send_queued();
    double ended = simgrid_get_clock() - began, last;
    printf("replay: rank %d computed %.9f ended %.9f messages %.0f of %.0f collectives %.0f of %.0f\n", rank, computed, ended,
           messages, recorded_messages, collectives, recorded_collectives);
    MPI_Reduce(&ended, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("Simulation time %.9f\n", last);
    free(all);
    rendezvous_end();
    MPI_Finalize();
    return 0;
}
