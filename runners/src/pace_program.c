/*
 * Loaded into the ranks of any MPI program (LD_PRELOAD), this makes each of them a node that is PACE_STRETCH times slower
 * than this machine's processor: what the rank computes between two calls of MPI, in processor time of its thread, takes
 * that many times as long by the clock. The program is unchanged and computes for real. On links that are as many times
 * slower it then runs like on nodes of this processor, but in slow motion.
 *
 * Every function of MPI that is not local is wrapped, by both of its names, since Open MPI's Fortran functions call the
 * second (mpi_wrappers.h, as for record.c). What a rank computes inside of MPI is not stretched.
 *
 * PACE_SHARE    of the speed, which this node has: a planted fault.
 * PACE_REAL_TIME
 *               the priority of a rank that is paced or waits (pace_node.h)
 *
 * Between its questions whether a message has come (MPI_Test, MPI_Iprobe) a rank waits for one, BETWEEN_QUESTIONS_NS at
 * most: it would keep the processor from the others. `elapsed` is the time from the moment at which all ranks have left
 * MPI_Init to that at which this rank calls MPI_Finalize.
 */
#define _GNU_SOURCE
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "pace_node.h"

#define BETWEEN_QUESTIONS_NS 50000

static double share = 1.0, begun_at;
static __thread double left_at, left_at_cpu;
static __thread int is_inside;

__attribute__((constructor)) static void begin(void)
{
    stretch = number("PACE_STRETCH");
    share = getenv("PACE_SHARE") ? number("PACE_SHARE") : 1.0;
    if (stretch > 0.0)
        start_pacing();
}

static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void leave(const char *name)
{
    if (!is_begun && !strncmp(name, "MPI_Init", 8)) {
        PMPI_Barrier(MPI_COMM_WORLD);
        is_begun = 1;
        begun_at = now();
        credit = 0.0;
    }
    if (!strncmp(name, "MPI_Test", 8) || !strcmp(name, "MPI_Iprobe") || !strcmp(name, "MPI_Improbe"))
        wait_for_news(BETWEEN_QUESTIONS_NS);
    left_at = now();
    left_at_cpu = processor_time();
}

static void enter(const char *name)
{
    if (is_begun) {
        double seconds = processor_time() - left_at_cpu;
        computed += seconds;
        settle(left_at, stretch * seconds / share);
    }
    if (!strcmp(name, "MPI_Finalize")) {
        elapsed = now() - begun_at;
        is_begun = 0;
    }
}

/* MPI's own functions call each other: only the outermost call is the program's. */
static int came_in(const char *name)
{
    if (is_inside || !is_paced)
        return 0;
    is_inside = 1;
    enter(name);
    return 1;
}

static void went_out(int is_ours, const char *name)
{
    if (is_ours) {
        leave(name);
        is_inside = 0;
    }
}

/* The program's own clock: one that decides by it how much to do decides as on nodes of full speed. */
double MPI_Wtime(void)
{
    return stretch > 0.0 ? now() / stretch : now();
}

double PMPI_Wtime(void) __attribute__((alias("MPI_Wtime"))); /* Fortran's functions call this one */

#define STRETCHED(result, name, parameters, arguments)                                                    \
    result name parameters                                                                                \
    {                                                                                                     \
        static __typeof__(P##name) *in_mpi;                                                               \
        if (!in_mpi)                                                                                      \
            in_mpi = (__typeof__(in_mpi))next("P" #name);                                                 \
        int is_ours = came_in(#name);                                                                     \
        result code = in_mpi arguments;                                                                   \
        went_out(is_ours, #name);                                                                         \
        return code;                                                                                      \
    }                                                                                                     \
    result P##name parameters __attribute__((alias(#name)));
#define RECORDED STRETCHED
#define WAITING STRETCHED
#define REFUSED STRETCHED
#define CREATING(result, name, parameters, arguments, created) STRETCHED(result, name, parameters, arguments)
#include "mpi_wrappers.h"
