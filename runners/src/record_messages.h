/*
 * The recorder's functions for messages from one rank to another and for the end of requests; see record.c.
 */
/* A request that is under way: a message or a collective. */
struct under_way {
    MPI_Request request;
    size_t line;        /* of a receive; the others are written at once */
    int number, is_receive, label;
    MPI_Comm comm;
    MPI_Datatype type;
};

/* A persistent request: what each start of it begins. */
struct persistent {
    MPI_Request request;
    int is_receive, partner, tag;
    double bytes;
    MPI_Comm comm;
    MPI_Datatype type;
};

/* A message that MPI_Mprobe found. */
struct probed {
    MPI_Message message;
    MPI_Comm comm;
};

static struct under_way *requests;
static struct persistent *persistent;
static struct probed *probed;
static size_t request_count, request_room, persistent_count, persistent_room, probed_count, probed_room;
static int request_number;
static double first_come; /* calls whose result depends on what comes first */

static double got(const MPI_Status *status, MPI_Datatype type)
{
    int count;
    PMPI_Get_count(status, type, &count);
    return count == MPI_UNDEFINED ? 0.0 : bytes_of(count, type);
}

/* ---- from one rank to another ---- */

static void sent(double seconds, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    if (to == MPI_PROC_NULL)
        nothing(seconds);
    else
        say(next(seconds), "send %d %d %d %.0f", in_world(comm, to), label_of(comm), tag, bytes_of(count, type));
}

#define BLOCKING(name)                                                                                    \
    static int recorded_##name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) \
    {                                                                                                     \
        sent(enter(), count, type, to, tag, comm);                                                        \
        int code = P##name(buffer, count, type, to, tag, comm);                                           \
        leave();                                                                                          \
        return code;                                                                                      \
    }
BLOCKING(MPI_Send)
BLOCKING(MPI_Bsend)
BLOCKING(MPI_Ssend)
BLOCKING(MPI_Rsend)

static void received(double seconds, const MPI_Status *status, MPI_Datatype type, MPI_Comm comm)
{
    if (status->MPI_SOURCE == MPI_PROC_NULL)
        nothing(seconds);
    else
        say(next(seconds), "recv %d %d %d %.0f", in_world(comm, status->MPI_SOURCE), label_of(comm), status->MPI_TAG,
            got(status, type));
}

static int recorded_MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    double seconds = enter();
    MPI_Status own;
    first_come += from == MPI_ANY_SOURCE;
    int code = PMPI_Recv(buffer, count, type, from, tag, comm, &own);
    received(seconds, &own, type, comm);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    leave();
    return code;
}

/* The line of a receive that is under way. */
static size_t open_line(double seconds)
{
    struct line *line = next(seconds);
    return line == &not_kept ? (size_t)-1 : (size_t)(line - lines);
}

static int begun(MPI_Request request, size_t line, int is_receive, MPI_Comm comm, MPI_Datatype type)
{
    if (request_count == request_room)
        requests = more(requests, &request_room, sizeof *requests);
    struct under_way *one = &requests[request_count++];
    one->request = request, one->line = line, one->is_receive = is_receive, one->comm = comm, one->type = type;
    one->label = is_receive ? label_of(comm) : 0;
    return one->number = ++request_number;
}

static void sending(const char *name, double seconds, MPI_Request request, double bytes, int to, int tag, MPI_Comm comm)
{
    if (to == MPI_PROC_NULL) {
        nothing(seconds);
        return;
    }
    struct line *line = next(seconds);
    int number = begun(request, 0, 0, comm, MPI_BYTE);
    say(line, "%s %d %d %d %d %.0f", name, number, in_world(comm, to), label_of(comm), tag, bytes);
}

static void receiving(double seconds, MPI_Request request, int from, MPI_Comm comm, MPI_Datatype type)
{
    first_come += from == MPI_ANY_SOURCE;
    if (from == MPI_PROC_NULL)
        nothing(seconds);
    else
        begun(request, open_line(seconds), 1, comm, type);
}

#define NON_BLOCKING(name)                                                                                \
    static int recorded_##name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                               MPI_Request *request)                                                      \
    {                                                                                                     \
        double seconds = enter();                                                                         \
        int code = P##name(buffer, count, type, to, tag, comm, request);                                  \
        sending("isend", seconds, *request, bytes_of(count, type), to, tag, comm);                        \
        leave();                                                                                          \
        return code;                                                                                      \
    }
NON_BLOCKING(MPI_Isend)
NON_BLOCKING(MPI_Ibsend)
NON_BLOCKING(MPI_Issend)
NON_BLOCKING(MPI_Irsend)

static int recorded_MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    double seconds = enter();
    int code = PMPI_Irecv(buffer, count, type, from, tag, comm, request);
    receiving(seconds, *request, from, comm, type);
    leave();
    return code;
}

static int recorded_MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
                                         MPI_Comm comm, MPI_Status *status)
{
    double seconds = enter();
    MPI_Status own;
    int code = PMPI_Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, &own), number = ++request_number;
    if (own.MPI_SOURCE != MPI_PROC_NULL) {
        say(next(seconds), "irecv %d %d %d %d %.0f", number, in_world(comm, own.MPI_SOURCE), label_of(comm), own.MPI_TAG,
            got(&own, type));
        seconds = 0.0;
    }
    sent(seconds, count, type, to, out_tag, comm);
    if (own.MPI_SOURCE != MPI_PROC_NULL)
        say(next(0.0), "wait %d", number);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    leave();
    return code;
}

/* ---- messages that are probed before they are received ---- */

static void found_message(MPI_Message message, MPI_Comm comm)
{
    if (message == MPI_MESSAGE_NO_PROC || message == MPI_MESSAGE_NULL)
        return;
    if (probed_count == probed_room)
        probed = more(probed, &probed_room, sizeof *probed);
    probed[probed_count++] = (struct probed){message, comm};
}

/* Its communicator; MPI_COMM_NULL for a message from MPI_PROC_NULL. */
static MPI_Comm took(MPI_Message message)
{
    for (size_t i = probed_count; i-- > 0;)
        if (probed[i].message == message) {
            MPI_Comm comm = probed[i].comm;
            probed[i] = probed[--probed_count];
            return comm;
        }
    return MPI_COMM_NULL;
}

static int recorded_MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    nothing(enter());
    int code = PMPI_Mprobe(from, tag, comm, message, status);
    found_message(*message, comm);
    leave();
    return code;
}

static int recorded_MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    nothing(enter());
    int code = PMPI_Improbe(from, tag, comm, flag, message, status);
    if (*flag)
        found_message(*message, comm);
    leave();
    has_asked = !*flag;
    return code;
}

static int recorded_MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    double seconds = enter();
    MPI_Comm comm = took(*message);
    MPI_Status own;
    int code = PMPI_Mrecv(buffer, count, type, message, &own);
    if (comm == MPI_COMM_NULL)
        nothing(seconds);
    else
        received(seconds, &own, type, comm);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    leave();
    return code;
}

static int recorded_MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    double seconds = enter();
    MPI_Comm comm = took(*message);
    int code = PMPI_Imrecv(buffer, count, type, message, request);
    if (comm == MPI_COMM_NULL)
        nothing(seconds);
    else
        receiving(seconds, *request, 0, comm, type);
    leave();
    return code;
}

/* ---- persistent requests ---- */

static struct persistent *persistent_of(MPI_Request request)
{
    for (size_t i = 0; i < persistent_count; i++)
        if (persistent[i].request == request)
            return &persistent[i];
    return NULL;
}

static void prepared(struct persistent one)
{
    struct persistent *old = persistent_of(one.request);
    if (!old && persistent_count == persistent_room)
        persistent = more(persistent, &persistent_room, sizeof *persistent);
    *(old ? old : &persistent[persistent_count++]) = one;
}

#define PREPARED(name, qualifier, is_receive)                                                             \
    static int recorded_##name(qualifier void *buffer, int count, MPI_Datatype type, int partner, int tag, MPI_Comm comm, \
                               MPI_Request *request)                                                      \
    {                                                                                                     \
        nothing(enter());                                                                                 \
        int code = P##name(buffer, count, type, partner, tag, comm, request);                             \
        prepared((struct persistent){*request, is_receive, partner, tag, bytes_of(count, type), comm, type}); \
        leave();                                                                                          \
        return code;                                                                                      \
    }
PREPARED(MPI_Send_init, const, 0)
PREPARED(MPI_Bsend_init, const, 0)
PREPARED(MPI_Ssend_init, const, 0)
PREPARED(MPI_Rsend_init, const, 0)
PREPARED(MPI_Recv_init, , 1)

static void started(double seconds, MPI_Request request)
{
    struct persistent *one = persistent_of(request);
    if (!one)
        nothing(seconds);
    else if (one->is_receive)
        receiving(seconds, request, one->partner, one->comm, one->type);
    else
        sending("psend", seconds, request, one->bytes, one->partner, one->tag, one->comm);
}

static int recorded_MPI_Start(MPI_Request *request)
{
    double seconds = enter();
    int code = PMPI_Start(request);
    started(seconds, *request);
    leave();
    return code;
}

static int recorded_MPI_Startall(int count, MPI_Request handles[])
{
    double seconds = enter();
    int code = PMPI_Startall(count, handles);
    for (int i = 0; i < count; i++, seconds = 0.0)
        started(seconds, handles[i]);
    leave();
    return code;
}

/* ---- the end of requests ---- */

static struct under_way *find(MPI_Request request)
{
    for (size_t i = request_count; i-- > 0;)
        if (requests[i].request == request)
            return &requests[i];
    return NULL;
}

/* A receive that was cancelled gets nothing: it has no line, and nobody waits for it. */
static void ended(double seconds, MPI_Request request, const MPI_Status *status)
{
    struct under_way *one = request == MPI_REQUEST_NULL ? NULL : find(request);
    int is_cancelled = 0;
    if (!one) {
        nothing(seconds);
        return;
    }
    if (one->is_receive)
        PMPI_Test_cancelled(status, &is_cancelled);
    if (one->is_receive && one->line < line_count) {
        if (is_cancelled)
            put(&lines[one->line], or_end(strdup("")));
        else
            say(&lines[one->line], "irecv %d %d %d %d %.0f", one->number, in_world(one->comm, status->MPI_SOURCE), one->label,
                status->MPI_TAG, got(status, one->type));
    }
    if (is_cancelled)
        nothing(seconds);
    else
        say(next(seconds), "wait %d", one->number);
    *one = requests[--request_count];
}

/* What was sent is under way already and counts as sent; Open MPI cancels no send. */
static int recorded_MPI_Cancel(MPI_Request *request)
{
    nothing(enter());
    DONE(PMPI_Cancel(request));
}

static int recorded_MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    double seconds = enter();
    MPI_Request before = *request;
    MPI_Status own;
    int code = PMPI_Wait(request, &own);
    ended(seconds, before, &own);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    leave();
    return code;
}

static int recorded_MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                 int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    MPI_Status own;
    int code = recorded_MPI_Irecv(in, in_count, in_type, from, in_tag, comm, &request);
    recorded_MPI_Send(out, out_count, out_type, to, out_tag, comm);
    recorded_MPI_Wait(&request, &own);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    return code;
}

static int recorded_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    double seconds = enter();
    MPI_Request before = *request;
    MPI_Status own;
    int code = PMPI_Test(request, flag, &own);
    first_come += *flag;
    if (*flag)
        ended(seconds, before, &own);
    else
        nothing(seconds);
    if (*flag && status != MPI_STATUS_IGNORE)
        *status = own;
    leave();
    has_asked = !*flag;
    return code;
}

/* What was sent arrives; what nobody knows the end of cannot be replayed. */
static int recorded_MPI_Request_free(MPI_Request *request)
{
    double seconds = enter();
    struct under_way *one = find(*request);
    struct persistent *kept = persistent_of(*request);
    if (one && one->is_receive && one->line < line_count)
        say(&lines[one->line], "unknown MPI_Request_free");
    if (one)
        *one = requests[--request_count];
    if (kept)
        *kept = persistent[--persistent_count];
    nothing(seconds);
    DONE(PMPI_Request_free(request));
}

/* Several at once: the handles before, and statuses of our own. */
struct several {
    MPI_Request *before;
    MPI_Status *status;
};

static struct several several(int count, const MPI_Request *handles)
{
    struct several all = {malloc((size_t)count * sizeof *all.before + 1), malloc((size_t)count * sizeof *all.status + 1)};
    memcpy(all.before, handles, (size_t)count * sizeof *handles);
    return all;
}

static void give(struct several all, int count, MPI_Status *statuses)
{
    if (statuses != MPI_STATUSES_IGNORE)
        memcpy(statuses, all.status, (size_t)count * sizeof *statuses);
    free(all.before);
    free(all.status);
}

static int recorded_MPI_Waitall(int count, MPI_Request handles[], MPI_Status statuses[])
{
    double seconds = enter();
    struct several all = several(count, handles);
    int code = PMPI_Waitall(count, handles, all.status);
    for (int i = 0; i < count; i++, seconds = 0.0)
        ended(seconds, all.before[i], &all.status[i]);
    give(all, count, statuses);
    leave();
    return code;
}

static int recorded_MPI_Testall(int count, MPI_Request handles[], int *flag, MPI_Status statuses[])
{
    double seconds = enter();
    struct several all = several(count, handles);
    int code = PMPI_Testall(count, handles, flag, all.status);
    for (int i = 0; i < count && *flag; i++, seconds = 0.0)
        ended(seconds, all.before[i], &all.status[i]);
    if (!*flag)
        nothing(seconds);
    give(all, *flag ? count : 0, statuses);
    leave();
    has_asked = !*flag;
    return code;
}

static void ended_any(double seconds, struct several all, int index, MPI_Status *status)
{
    first_come += index != MPI_UNDEFINED;
    if (index != MPI_UNDEFINED)
        ended(seconds, all.before[index], &all.status[0]);
    else
        nothing(seconds);
    if (status != MPI_STATUS_IGNORE)
        *status = all.status[0];
    give(all, 0, MPI_STATUSES_IGNORE);
    leave();
}

static int recorded_MPI_Waitany(int count, MPI_Request handles[], int *index, MPI_Status *status)
{
    double seconds = enter();
    struct several all = several(count, handles);
    int code = PMPI_Waitany(count, handles, index, &all.status[0]);
    ended_any(seconds, all, *index, status);
    return code;
}

static int recorded_MPI_Testany(int count, MPI_Request handles[], int *index, int *flag, MPI_Status *status)
{
    double seconds = enter();
    struct several all = several(count, handles);
    int code = PMPI_Testany(count, handles, index, flag, &all.status[0]);
    ended_any(seconds, all, *flag ? *index : MPI_UNDEFINED, *flag ? status : MPI_STATUS_IGNORE);
    has_asked = !*flag;
    return code;
}

#define SOME(name)                                                                                        \
    static int recorded_##name(int count, MPI_Request handles[], int *done, int indices[], MPI_Status statuses[]) \
    {                                                                                                     \
        double seconds = enter();                                                                         \
        struct several all = several(count, handles);                                                     \
        int code = P##name(count, handles, done, indices, all.status);                                    \
        int ends = *done == MPI_UNDEFINED ? 0 : *done;                                                    \
        first_come += ends > 0;                                                                           \
        for (int i = 0; i < ends; i++, seconds = 0.0)                                                     \
            ended(seconds, all.before[indices[i]], &all.status[i]);                                       \
        if (!ends)                                                                                        \
            nothing(seconds);                                                                             \
        give(all, ends, statuses);                                                                        \
        leave();                                                                                          \
        has_asked = !ends;                                                                                \
        return code;                                                                                      \
    }
SOME(MPI_Waitsome)
SOME(MPI_Testsome)

static int recorded_MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    double seconds = enter();
    int code = PMPI_Iprobe(from, tag, comm, flag, status);
    nothing(seconds);
    leave();
    has_asked = !*flag;
    return code;
}

static int recorded_MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    double seconds = enter();
    int code = PMPI_Request_get_status(request, flag, status);
    nothing(seconds);
    leave();
    has_asked = !*flag;
    return code;
}

static int recorded_MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    double seconds = enter();
    int code = PMPI_Probe(from, tag, comm, status);
    nothing(seconds);
    leave();
    return code;
}
