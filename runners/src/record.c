/*
 * Records an MPI program's calls in order and prints them when the program calls MPI_Finalize: appended to the file that
 * FALLOFF_RECORD names on rank 0, else to its stdout. A program that ends without MPI_Finalize has no recording.
 * runners/recording/recorder.py reads it, and replay.c replays it on another network.
 *
 * As a shared library (LD_PRELOAD=record.so) it serves any program, in C or Fortran, that is built with the same MPI. It
 * stands in place of MPI_Send and of PMPI_Send: Open MPI's Fortran functions call the latter. Linked into a program
 * (-DLINKED) it stands in place of the first only. mpi_wrappers.h, which runners/recording/mpi_functions.py makes from the installed
 * mpi.h, has a line for each function that is not local: RECORDED has a function here, CREATING makes a communicator,
 * WAITING is left out, REFUSED is named in the recording, once.
 *
 * Each call is one line: the nanoseconds that were computed before it, its name, and
 *   send, recv           partner, communicator, tag, bytes
 *   isend, irecv, psend  number of the request, partner, communicator, tag, bytes; psend: of a persistent request
 *   wait                 number of the request
 *   collectives          communicator, bytes that this rank puts in, root (0 where there is none), and for those whose
 *                        parts differ the bytes of all parts that this rank knows: of gatherv and scatterv at the root, of
 *                        allgatherv and reduce_scatter each rank's, of alltoallv and w those to, then those from each rank
 *   icollectives         the number of the request, and then the same
 *   comm                 of each communicator that was used, before all calls: communicator and ranks of its members
 *   unknown              the name of a refused function
 *   cut                  in place of all lines beyond the most of them (FALLOFF_RECORD_CALLS, default MOST_CALLS)
 *   end                  nanoseconds from MPI_Init to here, calls of the rank, and how many of those took what came first
 * Partners are ranks in MPI_COMM_WORLD. A communicator has a number that its members make out alike: below CHECKSUMS if it
 * has all ranks in their order (0: MPI_COMM_WORLD).
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

#include "record_text.h"

/* Open MPI's own count of the bytes from rank to rank: each rank leaves FALLOFF_RECORD.RANK.prof, which recorder.py
 * compares with the recording. It has to leave out what is not the program's: this variable of its turns it off. */
static int *monitoring;

static int set_monitoring(int to)
{
    int before = monitoring ? *monitoring : 0;
    if (monitoring)
        *monitoring = to;
    return before;
}

#include "record_messages.h"
#include "record_collectives.h"
#include "record_neighbours.h"

/* ---- beginning and end ---- */

enum { MOST_REFUSED = 600 };
static const char *refused[MOST_REFUSED];
static int refused_count;

static void ask_for_monitoring(void)
{
    const char *name = getenv("FALLOFF_RECORD");
    if (!name || !*name)
        return;
    setenv("OMPI_MCA_pml_monitoring_enable", "2", 1); /* 2: apart from what collectives send */
    setenv("OMPI_MCA_pml_monitoring_enable_output", "3", 1);
    setenv("OMPI_MCA_pml_monitoring_filename", name, 1);
    /* Some exchanges go by persistent requests inside, which are counted as the program's messages: pairwise they do not. */
    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 1);
    setenv("OMPI_MCA_coll_tuned_alltoall_algorithm", "2", 1);
    setenv("OMPI_MCA_coll_tuned_alltoallv_algorithm", "2", 1);
}

static void begin(void)
{
    const char *clock = getenv("FALLOFF_RECORD_CLOCK");
    const char *most = getenv("FALLOFF_RECORD_CALLS");
    most_calls = most ? strtoul(most, NULL, 10) : MOST_CALLS;
    monitoring = dlsym(RTLD_DEFAULT, "mca_common_monitoring_current_state");
    is_wall = clock && !strcmp(clock, "wall");
    made(MPI_COMM_WORLD);
    begun_at = MPI_Wtime();
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
    size_t head = members_text ? strlen(members_text) : 0, room = 64 + head + text_bytes + 32 * line_count, used = 0;
    double before = 0.0; /* computed before a line that is none */
    char *text = malloc(room);
    *bytes = 0;
    if (!text || room > 2147483647u) {
        free(text);
        return NULL;
    }
    memcpy(text, members_text ? members_text : "", head);
    used = head;
    for (size_t i = 0; i < line_count; i++) {
        before += lines[i].seconds;
        if (lines[i].text && !*lines[i].text)
            continue;
        used += (size_t)snprintf(text + used, room - used, "%.0f %s\n", 1e9 * before, lines[i].text ? lines[i].text : "lost");
        before = 0.0;
    }
    *bytes = (int)used;
    return text;
}

/* The last lines of a rank are kept however many there are. */
static void say_the_end(void)
{
    double seconds = enter(), counted = calls;
    int was_full = is_full;
    is_full = 0, most_calls = 0;
    if (is_crowded)
        say(next(0.0), "crowded");
    for (int i = 0; i < refused_count; i++)
        say(next(0.0), "unknown %s", refused[i]);
    if (was_full)
        say(next(0.0), "cut");
    say(next(seconds), "end %.0f %.0f %.0f", 1e9 * (MPI_Wtime() - begun_at), counted, first_come);
}

static int recorded_MPI_Finalize(void)
{
    say_the_end();
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

/* ---- all functions but the local ones ---- */

static void refuse(const char *name, int *is_named)
{
    nothing(enter());
    if (!*is_named && refused_count < MOST_REFUSED)
        refused[refused_count++] = name;
    *is_named = 1;
}

/* What MPI sends to make a communicator is not the program's. */
static int waits(void)
{
    nothing(enter());
    return set_monitoring(0);
}

/* All members are here. */
static void created_now(MPI_Comm comm)
{
    int kind;
    if (comm == MPI_COMM_NULL)
        return;
    struct communicator *one = made(comm);
    if (!monitoring) /* SMPI has no MPI_Topo_test */
        return;
    PMPI_Topo_test(comm, &kind);
    if (kind != MPI_CART && kind != MPI_UNDEFINED)
        PMPI_Comm_dup(comm, &one->own);
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
#define CREATING(result, name, parameters, arguments, created)                                             \
    WRAPPED(result, name, parameters, arguments, int before __attribute__((cleanup(waited))) = waits();   \
            int made_code = in_mpi arguments; created_now(*created); DONE(made_code))
#define REFUSED(result, name, parameters, arguments)                                                      \
    WRAPPED(result, name, parameters, arguments, static int is_named; refuse(#name, &is_named); DONE(in_mpi arguments))
#include "mpi_wrappers.h"
