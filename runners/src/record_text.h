/*
 * The recorder's clock, its lines, and its names of communicators; see record.c.
 */
#define POLLING_S 20e-6
/* Of a rank. What comes later is counted, but has no line (recorder.py cuts such a recording). */
enum { MOST_CALLS = 250000, MOST_BYTES = 256 << 20 };
/* From here on labels of communicators are checksums. */
enum { CHECKSUMS = 1000 };

/* What a receive got is known when it ends, so its line is kept open until then: a NULL. An empty text is no line. */
struct line {
    double seconds;
    char *text;
};

struct communicator {
    MPI_Comm comm, own; /* the latter for neighbours, where the recorder has to send their messages itself */
    int label, ranks, is_used;
    int *members;       /* ranks in MPI_COMM_WORLD */
    unsigned sum;       /* of the members */
    int copy;           /* among those with the same members that exist together */
};

static struct line *lines, not_kept;
static size_t line_count, line_room, text_bytes, most_calls;
static double calls;
static int is_full, is_crowded, is_wall, has_asked;
static double begun_at, left_at, left_at_cpu, carried;
static struct communicator *known;
static size_t known_count, known_room;
static char *members_text; /* a line for each communicator that was used */

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

static void *or_end(void *memory)
{
    if (!memory) {
        fputs("record: there is no memory left for the calls of this program\n", stderr);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void *more(void *memory, size_t *room, size_t each)
{
    *room = *room ? 2 * *room : 1024;
    return or_end(realloc(memory, *room * each));
}

/* The text, and behind it numbers. */
static char *text_of(int count, const double *numbers, const char *format, va_list words)
{
    va_list again;
    va_copy(again, words);
    size_t length = (size_t)vsnprintf(NULL, 0, format, again), room = length + 1 + 21 * (size_t)count;
    va_end(again);
    char *text = or_end(malloc(room));
    vsnprintf(text, room, format, words);
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, room - length, " %.0f", numbers[i]);
    return text;
}

static void put(struct line *line, char *text)
{
    if (line == &not_kept) {
        free(text);
        return;
    }
    line->text = text;
    text_bytes += strlen(text) + 24;
    is_full |= text_bytes > MOST_BYTES;
}

static void say(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct line *line, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    put(line, text_of(0, NULL, format, words));
    va_end(words);
}

/* A call that moves nothing: what was computed before it belongs to the next. */
static void nothing(double seconds)
{
    carried += seconds;
}

static struct line *next(double seconds)
{
    calls++;
    is_full |= most_calls && line_count >= most_calls;
    if (is_full)
        return &not_kept;
    if (line_count == line_room)
        lines = more(lines, &line_room, sizeof *lines);
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

/* ---- communicators ---- */

static int *members_of(MPI_Comm comm, int ranks)
{
    int *places = or_end(malloc((size_t)ranks * sizeof *places)), *members = or_end(malloc((size_t)ranks * sizeof *members));
    MPI_Group world, group;
    for (int rank = 0; rank < ranks; rank++)
        places[rank] = rank;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, ranks, places, world, members);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    free(places);
    return members;
}

/* All members make each communicator together, so they count alike those that have the same members (FNV-1a). */
static struct communicator *made(MPI_Comm comm)
{
    int ranks = ranks_in(comm), *members = members_of(comm, ranks), in_order = ranks == ranks_in(MPI_COMM_WORLD), copy = 0;
    unsigned sum = 2166136261u;
    for (int rank = 0; rank < ranks; rank++) {
        in_order &= members[rank] == rank;
        sum = (sum ^ (unsigned)(members[rank] + 1)) * 16777619u;
    }
    for (size_t i = 0; i < known_count; i++)
        if (known[i].sum == sum && known[i].copy == copy)
            copy++, i = (size_t)-1;
    if (known_count == known_room)
        known = more(known, &known_room, sizeof *known);
    struct communicator *one = &known[known_count++];
    int label = in_order ? copy : CHECKSUMS + (int)((sum ^ (unsigned)copy * 2654435761u) % 1000000000u);
    *one = (struct communicator){comm, MPI_COMM_NULL, label, ranks, 0, members, sum, copy};
    return one;
}

static struct communicator *communicator(MPI_Comm comm)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i].comm == comm)
            return &known[i];
    return made(comm);
}

static int in_world(MPI_Comm comm, int rank)
{
    return comm == MPI_COMM_WORLD || rank < 0 ? rank : communicator(comm)->members[rank];
}

static int label_of(MPI_Comm comm)
{
    struct communicator *one = communicator(comm);
    if (!one->is_used && one->label) {
        size_t length = members_text ? strlen(members_text) : 0, room = length + 32 + 12 * (size_t)one->ranks;
        members_text = or_end(realloc(members_text, room));
        length += (size_t)snprintf(members_text + length, room - length, "0 comm %d", one->label);
        for (int rank = 0; rank < one->ranks; rank++)
            length += (size_t)snprintf(members_text + length, room - length, " %d", one->members[rank]);
        snprintf(members_text + length, room - length, "\n");
    }
    one->is_used = 1;
    return one->label;
}

static void forget(MPI_Comm comm)
{
    for (size_t i = 0; i < known_count; i++)
        if (known[i].comm == comm) {
            if (known[i].own != MPI_COMM_NULL)
                PMPI_Comm_free(&known[i].own);
            free(known[i].members);
            known[i] = known[--known_count];
            return;
        }
}

#define DONE(call)                                                                                        \
    int code = call;                                                                                      \
    leave();                                                                                              \
    return code
