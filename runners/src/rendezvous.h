/*
 * Messages above the eager limit as Open MPI 4.1 sends them over TCP, by "put", for programs of SimGrid's SMPI. Asked for by
 * FALLOFF_PUT, the bytes from which on a message is large and the latency [s]; without it, and for smaller messages,
 * these are PMPI's own.
 *
 * The sender announces a message; the receiver, when it has both read the announcement and posted the receive, asks for it;
 * then the message goes in one piece. There is one TCP connection between two ranks, so what one sends to the other keeps
 * its order: an announcement or a request that is written during a message leaves behind that message. And a rank reads
 * what has arrived only while it waits in MPI, neither while it computes nor in Isend and Irecv.
 *
 * Hence two ranks that exchange messages send both at once where neither has read the other's announcement before it
 * writes its own. Where one has, its request goes out before its announcement; the other reads both, sends its message first, and
 * its own request follows behind that: the messages go one after the other on a link that could carry both.
 *
 * Ranks that are exactly alike would stay in phase for ever, as none do whose packets, interrupts and schedulers are real.
 * So a rank notices that a message has come between none and two latencies late, always the same in the same program. Two
 * latencies are the least that brings two ranks out of phase.
 *
 * Left out: small messages do not queue behind large ones, a sender is busy until its message has arrived (not only until
 * buffers hold the rest), and messages inside SMPI's collectives do not keep the order. Both ends give a message the same
 * size.
 */
#include <mpi.h>
#include <simgrid/actor.h>
#include <stdlib.h>
#include <string.h>

enum control_kind { ANNOUNCEMENT, ASKING };

/* Such a message is 40 or 64 bytes long in Open MPI. */
struct control {
    int kind, number, tag, members;
    char rest[48];
};

/* A large message at one of its ends, until the program has waited for it. */
struct large {
    struct large *next;
    int sends, partner, tag, members; /* the partner by its number among all ranks */
    int number;                       /* among those of its sender; -1: nothing announced fits a receive yet */
    int is_done;
    void *buffer;
    int count;
    MPI_Datatype type;
    MPI_Request flow; /* while its bytes are under way */
    MPI_Status status;
};

/* What is written during a message to the same rank; `message` is NULL for a control. */
struct written {
    struct written *next;
    struct control control;
    struct large *message;
};

struct announced {
    struct announced *next;
    struct control control;
    int from;
};

static double put_from;               /* bytes; 0: not asked for */
static double latest;                 /* s: how late a rank notices a message at most */
static unsigned long drawn;           /* what is random in that */
static MPI_Comm controls, contents;
static MPI_Request next_control = MPI_REQUEST_NULL;
static struct control heard;
static struct large *larges;          /* in the order of their calls */
static struct announced *announced;   /* read, and no receive is posted for them */
static struct written **streams;      /* by rank: what waits until a message there has gone; its head is that message */
static int own_rank, next_number;

static void listen_to_controls(void)
{
    PMPI_Irecv(&heard, sizeof heard, MPI_BYTE, MPI_ANY_SOURCE, 0, controls, &next_control);
}

/* Knuth's linear congruence, of 64 bits. */
static void notice_late(void)
{
    drawn = drawn * 6364136223846793005UL + 1442695040888963407UL;
    sg_actor_sleep_for(latest * (double)(drawn >> 11) / (double)(1UL << 53));
}

/* After MPI_Init. */
static void rendezvous_begin(void)
{
    const char *asked = getenv("FALLOFF_PUT");
    char *end;
    int ranks;
    if (!asked)
        return;
    put_from = strtod(asked, &end);
    latest = 2.0 * strtod(end, NULL);
    PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    drawn = 0x9e3779b97f4a7c15UL * (unsigned long)(own_rank + 1);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_dup(MPI_COMM_WORLD, &controls);
    PMPI_Comm_dup(MPI_COMM_WORLD, &contents);
    streams = calloc((size_t)ranks, sizeof *streams);
    listen_to_controls();
}

/* Before MPI_Finalize, when all messages have been waited for. */
static void rendezvous_end(void)
{
    if (put_from > 0.0)
        PMPI_Cancel(&next_control);
}

/* ---- the stream of bytes to each rank ---- */

static void start_written(int to, struct written *one)
{
    struct large *m = one->message;
    if (m)
        PMPI_Isend(m->buffer, m->count, m->type, to, m->number, contents, &m->flow);
    else
        PMPI_Send(&one->control, sizeof one->control, MPI_BYTE, to, 0, controls);
}

static void write_to(int to, struct control control, struct large *message)
{
    struct written *one = malloc(sizeof *one), **end = &streams[to];
    *one = (struct written){NULL, control, message};
    if (*end == NULL)
        start_written(to, one);
    if (*end == NULL && !message) {
        free(one);
        return;
    }
    while (*end)
        end = &(*end)->next;
    *end = one;
}

static void message_has_gone(int to)
{
    do {
        struct written *gone = streams[to];
        streams[to] = gone->next;
        free(gone);
        if (streams[to])
            start_written(to, streams[to]);
    } while (streams[to] && !streams[to]->message);
}

/* ---- announcements, and what answers them ---- */

static int fits(const struct large *receive, int from, const struct control *control)
{
    return !receive->sends && receive->number < 0 && receive->members == control->members &&
           (receive->partner == from || receive->partner == MPI_ANY_SOURCE) &&
           (receive->tag == control->tag || receive->tag == MPI_ANY_TAG);
}

static void ask_for(struct large *receive, int from, const struct control *control)
{
    receive->partner = from;
    receive->tag = control->tag;
    receive->number = control->number;
    PMPI_Irecv(receive->buffer, receive->count, receive->type, from, receive->number, contents, &receive->flow);
    write_to(from, (struct control){ASKING, control->number}, NULL);
}

static void read_control(int from)
{
    struct control control = heard;
    struct large *m = larges;
    listen_to_controls();
    if (control.kind == ASKING) {
        while (!m->sends || m->number != control.number)
            m = m->next;
        write_to(from, control, m);
        return;
    }
    while (m && !fits(m, from, &control))
        m = m->next;
    if (m) {
        ask_for(m, from, &control);
        return;
    }
    struct announced **end = &announced;
    while (*end)
        end = &(*end)->next;
    *end = malloc(sizeof **end);
    **end = (struct announced){NULL, control, from};
}

/* Waits until something happens, and returns whether `own` has ended. */
static int happens(MPI_Request *own, MPI_Status *status)
{
    static MPI_Request *all;
    static struct large **whose;
    static int room;
    MPI_Status of_any;
    int count = 0, index;
    for (struct large *m = larges; m; m = m->next)
        count++;
    if (count + 2 > room) {
        room = 2 * count + 16;
        all = realloc(all, (size_t)room * sizeof *all);
        whose = realloc(whose, (size_t)room * sizeof *whose);
    }
    all[0] = next_control;
    all[1] = own ? *own : MPI_REQUEST_NULL;
    count = 2;
    for (struct large *m = larges; m; m = m->next)
        if (m->flow != MPI_REQUEST_NULL) {
            whose[count] = m;
            all[count++] = m->flow;
        }
    PMPI_Waitany(count, all, &index, &of_any);
    if (index == 0) {
        read_control(of_any.MPI_SOURCE);
    } else if (index == 1) {
        *own = MPI_REQUEST_NULL;
        if (status != MPI_STATUS_IGNORE)
            *status = of_any;
        return 1;
    } else {
        struct large *m = whose[index];
        m->flow = MPI_REQUEST_NULL;
        m->is_done = 1;
        m->status = of_any;
        if (m->sends)
            message_has_gone(m->partner);
        else
            notice_late();
    }
    return 0;
}

/* Reads what has arrived. */
static void rendezvous_read(void)
{
    MPI_Status status;
    int is_there = put_from > 0.0;
    while (is_there) {
        PMPI_Test(&next_control, &is_there, &status);
        if (is_there)
            read_control(status.MPI_SOURCE);
    }
}

/* Whether messages depend on it that this rank goes on reading. */
static int rendezvous_is_busy(void)
{
    return larges != NULL;
}

/* ---- MPI's functions ---- */

static int is_put(int count, MPI_Datatype type, int partner, MPI_Comm comm)
{
    int size, self;
    if (put_from == 0.0 || partner == MPI_PROC_NULL)
        return 0;
    PMPI_Type_size(type, &size);
    PMPI_Comm_rank(comm, &self);
    return (double)count * size >= put_from && partner != self;
}

static int among_all(int partner, MPI_Comm comm)
{
    MPI_Group group, all;
    int found = partner;
    if (comm == MPI_COMM_WORLD || partner == MPI_ANY_SOURCE)
        return partner;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(group, 1, &partner, all, &found);
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    return found;
}

static struct large *new_large(int sends, void *buffer, int count, MPI_Datatype type, int partner, int tag, MPI_Comm comm)
{
    struct large *m = malloc(sizeof *m), **end = &larges;
    memset(m, 0, sizeof *m);
    m->sends = sends;
    m->partner = among_all(partner, comm);
    m->tag = tag;
    PMPI_Comm_size(comm, &m->members); /* tells the communicators apart in which two ranks exchange large messages */
    m->number = sends ? next_number++ : -1;
    m->buffer = buffer;
    m->count = count;
    m->type = type;
    m->flow = MPI_REQUEST_NULL;
    while (*end)
        end = &(*end)->next;
    return *end = m;
}

static int rendezvous_isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                            MPI_Request *request)
{
    if (!is_put(count, type, to, comm))
        return PMPI_Isend(buffer, count, type, to, tag, comm, request);
    struct large *m = new_large(1, (void *)buffer, count, type, to, tag, comm);
    write_to(m->partner, (struct control){ANNOUNCEMENT, m->number, tag, m->members}, NULL);
    *request = (MPI_Request)m;
    return MPI_SUCCESS;
}

/* A small one that has to be received, too, is announced in Open MPI, and carries its bytes with that. */
static int rendezvous_issend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                             MPI_Request *request)
{
    if (!is_put(count, type, to, comm))
        return PMPI_Issend(buffer, count, type, to, tag, comm, request);
    return rendezvous_isend(buffer, count, type, to, tag, comm, request);
}

static int rendezvous_irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                            MPI_Request *request)
{
    if (!is_put(count, type, from, comm))
        return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
    struct large *m = new_large(0, buffer, count, type, from, tag, comm);
    struct announced **place = &announced, *found;
    while (*place && !fits(m, (*place)->from, &(*place)->control))
        place = &(*place)->next;
    if ((found = *place)) {
        *place = found->next;
        ask_for(m, found->from, &found->control);
        free(found);
    }
    *request = (MPI_Request)m;
    return MPI_SUCCESS;
}

static int rendezvous_wait(MPI_Request *request, MPI_Status *status)
{
    struct large **place = &larges, *m;
    if (put_from == 0.0)
        return PMPI_Wait(request, status);
    while (*place && (MPI_Request)*place != *request)
        place = &(*place)->next;
    if (!(m = *place)) {
        while (*request != MPI_REQUEST_NULL && !happens(request, status))
            ;
        return MPI_SUCCESS;
    }
    while (!m->is_done)
        happens(NULL, MPI_STATUS_IGNORE);
    if (status != MPI_STATUS_IGNORE) {
        *status = m->status;
        status->MPI_TAG = m->tag;
    }
    for (place = &larges; *place != m; place = &(*place)->next)
        ;
    *place = m->next;
    free(m);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

static int rendezvous_send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    MPI_Request request;
    if (!is_put(count, type, to, comm))
        return PMPI_Send(buffer, count, type, to, tag, comm);
    rendezvous_isend(buffer, count, type, to, tag, comm, &request);
    return rendezvous_wait(&request, MPI_STATUS_IGNORE);
}

static int rendezvous_recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    if (put_from == 0.0 || from == MPI_PROC_NULL)
        return PMPI_Recv(buffer, count, type, from, tag, comm, status);
    rendezvous_irecv(buffer, count, type, from, tag, comm, &request);
    return rendezvous_wait(&request, status);
}

/* What is announced is there as soon as the announcement has been read. */
static int rendezvous_iprobe(int from, int tag, MPI_Comm comm, int *is_there, MPI_Status *status)
{
    struct large asked = {.tag = tag, .number = -1};
    if (put_from == 0.0)
        return PMPI_Iprobe(from, tag, comm, is_there, status);
    asked.partner = among_all(from, comm);
    PMPI_Comm_size(comm, &asked.members);
    rendezvous_read();
    *is_there = 0;
    for (struct announced *one = announced; one && !*is_there; one = one->next)
        *is_there = fits(&asked, one->from, &one->control);
    return *is_there ? MPI_SUCCESS : PMPI_Iprobe(from, tag, comm, is_there, status);
}
