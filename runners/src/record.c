/*
 * Records an MPI program's calls in order and prints them when the program calls MPI_Finalize: appended to the file that
 * FALLOFF_RECORD names on rank 0, else to its stdout. A program that ends without MPI_Finalize has no recording.
 * runners/recording.py reads it, and SimGrid replays it on another network.
 *
 * As a shared library (LD_PRELOAD=record.so) it serves any program, in C or Fortran, that is built with the same MPI. It
 * stands in place of MPI_Send and of PMPI_Send: Open MPI's Fortran functions call the latter. Linked into a program
 * (-DLINKED) it stands in place of the first only. mpi_wrappers.h, which runners/mpi_functions.py makes from the installed
 * mpi.h, has a line for each function that is not local: RECORDED has a function here, WAITING is left out, REFUSED is
 * named in the recording, once.
 *
 * Each call is one line: the nanoseconds that were computed before it, its name, and
 *   send, recv           partner, communicator, tag, bytes
 *   isend, irecv         number of the request, partner, communicator, tag, bytes
 *   wait                 number of the request
 *   collectives          communicator, bytes that this rank puts in, root (0 where there is none)
 *   unknown              the name of a refused function
 * Partners are ranks in MPI_COMM_WORLD. A communicator is 0 if it has all ranks in their order, else a number that
 * its members make out alike.
 *
 * What is computed is the processor time between two calls, or the wall clock's where that is less: several ranks may
 * share a core, and a rank may have several threads. With FALLOFF_RECORD_CLOCK=wall it is the wall clock's, for nodes
 * that sleep to compute more slowly. A program that asks over and over whether a message has come (MPI_Test,
 * MPI_Iprobe) waits; moments of less than POLLING_S between two such questions are not computing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLLING_S 20e-6
enum { COMMUNICATORS = 256, MOST_BYTES = 256 << 20 };

/* The text so far. What a receive got is known when it ends, so its line is kept open until then. */
struct line {
    double seconds;
    char *text;         /* NULL for a receive that is under way */
};

struct under_way {
    MPI_Request request;
    size_t line;        /* of a receive; that of a send is written at once */
    int number, is_receive, label;
    MPI_Comm comm;
    MPI_Datatype type;
};

static struct line *lines;
static size_t line_count, line_room, text_bytes;
static struct under_way *requests;
static size_t request_count, request_room;
static int request_number, is_full, is_crowded, is_wall, has_asked;
static double left_at, left_at_cpu, carried;
static struct { MPI_Comm comm; int label; } known[COMMUNICATORS];
static int known_count;

static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void leave(void)
{
    left_at = MPI_Wtime();
    left_at_cpu = is_wall ? 0.0 : processor_time();
}

/* Seconds computed since the last call; counted once. */
static double enter(void)
{
    double wall = MPI_Wtime() - left_at;
    double cpu = is_wall ? wall : processor_time() - left_at_cpu;
    double seconds = wall < cpu ? wall : cpu;
    if (has_asked && seconds < POLLING_S)
        seconds = 0.0;
    has_asked = 0;
    return seconds > 0.0 ? seconds : 0.0;
}

static void *more(void *memory, size_t *room, size_t each)
{
    *room = *room ? 2 * *room : 1024;
    memory = realloc(memory, *room * each);
    if (!memory) {
        fputs("record: there is no memory left for the calls of this program\n", stderr);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void say(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct line *line, const char *format, ...)
{
    char text[256];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    line->text = strdup(text);
    text_bytes += strlen(text) + 16;
    is_full |= text_bytes > MOST_BYTES || !line->text;
}

/* A call that moves nothing: what was computed before it belongs to the next. */
static void nothing(double seconds)
{
    carried += seconds;
}

static struct line *next(double seconds)
{
    if (line_count == line_room)
        lines = more(lines, &line_room, sizeof *lines);
    if (is_full)
        line_count = 0; /* what is not whole is of no use, and is said to be so */
    lines[line_count].seconds = seconds + carried;
    carried = 0.0;
    lines[line_count].text = NULL;
    return &lines[line_count++];
}

static double bytes_of(double count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

static double got(const MPI_Status *status, MPI_Datatype type)
{
    int count;
    PMPI_Get_count(status, type, &count);
    return count == MPI_UNDEFINED ? 0.0 : bytes_of(count, type);
}

static int ranks_in(MPI_Comm comm)
{
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    return ranks;
}

static int rank_in(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int in_world(MPI_Comm comm, int rank)
{
    if (comm == MPI_COMM_WORLD || rank < 0)
        return rank;
    MPI_Group world, group;
    int found;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, 1, &rank, world, &found);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return found;
}

/* 0 for all ranks in their order, else a checksum of the members (FNV-1a). */
static int label_of(MPI_Comm comm)
{
    if (comm == MPI_COMM_WORLD)
        return 0;
    for (int i = 0; i < known_count; i++)
        if (known[i].comm == comm)
            return known[i].label;
    int count = ranks_in(comm), in_order = count == ranks_in(MPI_COMM_WORLD);
    unsigned sum = 2166136261u;
    for (int rank = 0; rank < count; rank++) {
        int member = in_world(comm, rank);
        in_order &= member == rank;
        sum = (sum ^ (unsigned)(member + 1)) * 16777619u;
    }
    int label = in_order ? 0 : (int)(sum % 1000000000u) + 1;
    if (known_count < COMMUNICATORS) {
        known[known_count].comm = comm;
        known[known_count++].label = label;
    }
    return label;
}

#define DONE(call)                                                                                        \
    int code = call;                                                                                      \
    leave();                                                                                              \
    return code

/* Open MPI's own count of the bytes from rank to rank: each rank leaves FALLOFF_RECORD.RANK.prof, which recording.py
 * compares with the recording. It has to leave out what is not the program's: this variable of its turns it off. */
static int *monitoring;

static int set_monitoring(int to)
{
    int before = monitoring ? *monitoring : 0;
    if (monitoring)
        *monitoring = to;
    return before;
}

static void ask_for_monitoring(void)
{
    const char *name = getenv("FALLOFF_RECORD");
    if (!name || !*name)
        return;
    setenv("OMPI_MCA_pml_monitoring_enable", "2", 1); /* 2: apart from what collectives send */
    setenv("OMPI_MCA_pml_monitoring_enable_output", "3", 1);
    setenv("OMPI_MCA_pml_monitoring_filename", name, 1);
    /* Large MPI_Alltoall go by persistent requests inside, which are counted as the program's messages: pairwise they do not. */
    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 1);
    setenv("OMPI_MCA_coll_tuned_alltoall_algorithm", "2", 1);
}

static void begin(void)
{
    const char *clock = getenv("FALLOFF_RECORD_CLOCK");
    monitoring = dlsym(RTLD_DEFAULT, "mca_common_monitoring_current_state");
    is_wall = clock && !strcmp(clock, "wall");
    leave();
}

static int recorded_MPI_Init(int *argc, char ***argv)
{
    ask_for_monitoring();
    int code = PMPI_Init(argc, argv);
    begin();
    return code;
}

static int recorded_MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    ask_for_monitoring();
    /* One thread at a time may call: the lines have one order. */
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (*provided > MPI_THREAD_SERIALIZED)
        *provided = MPI_THREAD_SERIALIZED;
    begin();
    return code;
}

static void forget(MPI_Comm comm)
{
    for (int i = 0; i < known_count; i++)
        if (known[i].comm == comm)
            known[i] = known[--known_count];
}

static int recorded_MPI_Comm_free(MPI_Comm *comm)
{
    nothing(enter());
    forget(*comm);
    DONE(PMPI_Comm_free(comm));
}

static int recorded_MPI_Comm_disconnect(MPI_Comm *comm)
{
    nothing(enter());
    forget(*comm);
    DONE(PMPI_Comm_disconnect(comm));
}

static char *whole_text(int *bytes)
{
    size_t room = 64 + text_bytes + 32 * line_count, used = 0;
    char *text = malloc(room);
    *bytes = 0;
    if (!text || is_full || room > 2147483647u) {
        free(text);
        return NULL;
    }
    for (size_t i = 0; i < line_count; i++)
        used += (size_t)snprintf(text + used, room - used, "%.0f %s\n", 1e9 * lines[i].seconds,
                                 lines[i].text ? lines[i].text : "lost");
    *bytes = (int)used;
    return text;
}

static int recorded_MPI_Finalize(void)
{
    if (is_crowded)
        say(next(0.0), "crowded");
    say(next(enter()), "end");
    int bytes, before = set_monitoring(0), rank = rank_in(MPI_COMM_WORLD), ranks = ranks_in(MPI_COMM_WORLD);
    char *text = whole_text(&bytes);
    if (rank) {
        PMPI_Send(&bytes, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        PMPI_Send(text ? text : "", bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        set_monitoring(before);
        return PMPI_Finalize();
    }
    const char *name = getenv("FALLOFF_RECORD");
    FILE *out = stdout;
    if (name && *name && !(out = fopen(name, "a"))) {
        fprintf(stderr, "record: cannot write %s: %s; the recording goes to stdout\n", name, strerror(errno));
        out = stdout;
    }
    fprintf(out, "Recording of %d ranks, %s time\n", ranks, is_wall ? "wall" : "processor");
    for (int from = 0; from < ranks; from++) {
        if (from) {
            PMPI_Recv(&bytes, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            text = malloc((size_t)bytes + 1);
            PMPI_Recv(text, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        fprintf(out, "rank %d\n", from);
        if (!bytes)
            fputs("0 too_long\n", out);
        fwrite(text ? text : "", 1, (size_t)bytes, out);
        free(text);
    }
    fputs("end of recording\n", out);
    if (monitoring)
        fputs("monitored\n", out);
    if (out != stdout)
        fclose(out);
    set_monitoring(before);
    return PMPI_Finalize();
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
    int code = PMPI_Recv(buffer, count, type, from, tag, comm, &own);
    received(seconds, &own, type, comm);
    if (status != MPI_STATUS_IGNORE)
        *status = own;
    leave();
    return code;
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

#define NON_BLOCKING(name)                                                                                \
    static int recorded_##name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                               MPI_Request *request)                                                      \
    {                                                                                                     \
        double seconds = enter();                                                                         \
        int code = P##name(buffer, count, type, to, tag, comm, request);                                  \
        if (to == MPI_PROC_NULL)                                                                          \
            nothing(seconds);                                                                   \
        else                                                                                              \
            say(next(seconds), "isend %d %d %d %d %.0f", begun(*request, 0, 0, comm, type),               \
                in_world(comm, to), label_of(comm), tag, bytes_of(count, type));                          \
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
    if (from == MPI_PROC_NULL) {
        nothing(seconds);
    } else {
        next(seconds);
        begun(*request, line_count - 1, 1, comm, type);
    }
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

static void ended(double seconds, MPI_Request request, const MPI_Status *status)
{
    struct under_way *one = request == MPI_REQUEST_NULL ? NULL : find(request);
    if (!one) {
        nothing(seconds);
        return;
    }
    if (one->is_receive && one->line < line_count)
        say(&lines[one->line], "irecv %d %d %d %d %.0f", one->number, in_world(one->comm, status->MPI_SOURCE),
            one->label, status->MPI_TAG, got(status, one->type));
    say(next(seconds), "wait %d", one->number);
    *one = requests[--request_count];
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
    if (one && one->is_receive)
        say(&lines[one->line], "unknown MPI_Request_free");
    if (one)
        *one = requests[--request_count];
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
        for (int i = 0; i < ends; i++, seconds = 0.0)                                                     \
            ended(seconds, all.before[indices[i]], &all.status[i]);                                       \
        if (!ends)                                                                                        \
            nothing(seconds);                                                                   \
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

/* ---- collectives: with MPI_IN_PLACE a rank's part is described by what it receives ---- */

static void took_part(const char *name, MPI_Comm comm, double bytes, int root)
{
    if (ranks_in(comm) == 1)
        nothing(enter());
    else
        say(next(enter()), "%s %d %.0f %d", name, label_of(comm), bytes, root);
}

static int recorded_MPI_Barrier(MPI_Comm comm)
{
    took_part("barrier", comm, 0.0, 0);
    DONE(PMPI_Barrier(comm));
}

static int recorded_MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    took_part("bcast", comm, bytes_of(count, type), in_world(comm, root));
    DONE(PMPI_Bcast(buffer, count, type, root, comm));
}

static int recorded_MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    took_part("reduce", comm, bytes_of(count, type), in_world(comm, root));
    DONE(PMPI_Reduce(out, in, count, type, op, root, comm));
}

static int recorded_MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    took_part("allreduce", comm, bytes_of(count, type), 0);
    DONE(PMPI_Allreduce(out, in, count, type, op, comm));
}

static int recorded_MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
               MPI_Datatype in_type, int root, MPI_Comm comm)
{
    double bytes = out == MPI_IN_PLACE ? bytes_of(in_count, in_type) : bytes_of(out_count, out_type);
    took_part("gather", comm, bytes, in_world(comm, root));
    DONE(PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm));
}

static int recorded_MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                  MPI_Datatype in_type, MPI_Comm comm)
{
    if (out == MPI_IN_PLACE)
        out_count = in_count, out_type = in_type; /* which the monitoring reads, too */
    took_part("allgather", comm, bytes_of(out_count, out_type), 0);
    DONE(PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm));
}

static int recorded_MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm)
{
    double bytes = in == MPI_IN_PLACE ? bytes_of(out_count, out_type) : bytes_of(in_count, in_type);
    took_part("scatter", comm, bytes, in_world(comm, root));
    DONE(PMPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm));
}

static int recorded_MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                 MPI_Datatype in_type, MPI_Comm comm)
{
    if (out == MPI_IN_PLACE)
        out_count = in_count, out_type = in_type;
    took_part("alltoall", comm, bytes_of(out_count, out_type), 0);
    DONE(PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm));
}

/* ---- all functions but the local ones ---- */

static void refuse(const char *name, int *is_named)
{
    double seconds = enter();
    if (*is_named)
        nothing(seconds);
    else
        say(next(seconds), "unknown %s", name);
    *is_named = 1;
}

/* What MPI sends to make a communicator is not the program's. */
static int waits(void)
{
    nothing(enter());
    return set_monitoring(0);
}

static void waited(const int *before)
{
    set_monitoring(*before);
}

#ifdef LINKED
/* Ranks may share a thread here, and nothing calls MPI but the program. */
#define WRAPPED(result, name, parameters, arguments, how)                                                 \
    result name parameters                                                                                \
    {                                                                                                     \
        __typeof__(P##name) *in_mpi = P##name;                                                            \
        how;                                                                                              \
    }
#else
/* MPI's own functions call each other, and those of record.c call MPI's: only the outermost is the program's. */
static __thread int is_inside;
static int is_taken;

static int came_in(void)
{
    if (is_inside)
        return 0;
    if (__atomic_exchange_n(&is_taken, 1, __ATOMIC_ACQUIRE)) {
        is_crowded = 1;
        return 0;
    }
    return is_inside = 1;
}

static void went_out(int *was_in)
{
    if (*was_in) {
        is_inside = 0;
        __atomic_store_n(&is_taken, 0, __ATOMIC_RELEASE);
    }
}

#define WRAPPED(result, name, parameters, arguments, how)                                                 \
    result name parameters                                                                                \
    {                                                                                                     \
        static __typeof__(P##name) *in_mpi;                                                               \
        if (!in_mpi)                                                                                      \
            in_mpi = (__typeof__(in_mpi))dlsym(RTLD_NEXT, "P" #name);                                     \
        int is_ours __attribute__((cleanup(went_out))) = came_in();                                       \
        if (!is_ours)                                                                                     \
            return in_mpi arguments;                                                                      \
        how;                                                                                              \
    }                                                                                                     \
    result P##name parameters __attribute__((alias(#name)));
#endif

#define RECORDED(result, name, parameters, arguments)                                                     \
    WRAPPED(result, name, parameters, arguments, (void)in_mpi; return recorded_##name arguments)
#define WAITING(result, name, parameters, arguments)                                                      \
    WRAPPED(result, name, parameters, arguments,                                                          \
            int before __attribute__((cleanup(waited))) = waits(); DONE(in_mpi arguments))
#define REFUSED(result, name, parameters, arguments)                                                      \
    WRAPPED(result, name, parameters, arguments, static int is_named; refuse(#name, &is_named); DONE(in_mpi arguments))
#include "mpi_wrappers.h"
