/*
 * What paced nodes share: sleeping until a node of the wanted speed would have finished, priority, waiting for messages,
 * and what a rank says at its end. pace.c and pace_program.c say what they pace; define _GNU_SOURCE before it is included.
 *
 * PACE_REAL_TIME
 *               the priority (sched(7), SCHED_FIFO) with which a rank is paced, and waits between MPI_Init and
 *               MPI_Finalize. Whatever else computes for milliseconds on end, as making or checking a matrix, goes on
 *               without it: it would keep the processors from the ranks that wait for theirs.
 *
 * A rank that waits for messages sleeps. Open MPI calls sched_yield when it has nothing to do
 * (mpi_yield_when_idle 1); here that waits until one of the sockets that it listens to has news.
 *
 * At its end a rank says on stderr: calls that were paced; seconds charged, computed, slept and paused; late, by how much
 * it missed its times beyond what a later call could make up; delayed, how long the kernel let it wait for a processor;
 * how often it waited for messages, and how often in vain.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- the node ---- */

/* s: a sleep ends late by less than this. The next call is given it back, no more. */
#define LARGEST_CREDIT 2e-3
/* s: shorter than what waking up costs. */
#define SHORTEST_SLEEP 20e-6
#define LONGEST_BURST_US 2000

static int is_paced;
static int is_begun;                    /* between MPI_Init and MPI_Finalize */
static long calls;
static double charged, computed, slept, paused, late;
static double credit;  /* s to the time at which the last call should have ended; below 0 the next one makes it up */
static long waits, timeouts;
static double stretch;         /* by how much computing is stretched; 0: it is paced otherwise */
static double elapsed;         /* s from MPI_Init to MPI_Finalize, where it is stretched */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double end)
{
    double whole = floor(end);
    struct timespec t = {(time_t)whole, (long)((end - whole) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static double number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0.0;
}

static const char *rank(void)
{
    const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    return "0";
}

/* Without real-time priority the shortest slice gets a waking rank a processor soonest (Linux 6.12; older kernels
   ignore it). A rank with real-time priority has no slices, and the call fails. */
static void ask_for_short_slices(void)
{
    struct {
        unsigned size, policy;
        unsigned long long flags;
        int nice;
        unsigned priority;
        unsigned long long slice_ns, deadline, period;
    } wanted = {.size = sizeof wanted, .slice_ns = 100000};
    if (sched_getscheduler(0) == SCHED_OTHER)
        syscall(SYS_sched_setattr, 0, &wanted, 0);
}

/* ---- priority ---- */

static volatile sig_atomic_t is_in_real_time;

/* The kernel says so when a rank with real-time priority has computed so long without a wait. */
static void give_way(int signal)
{
    struct sched_param none = {0};
    (void)signal;
    is_in_real_time = 0;
    sched_setscheduler(getpid(), SCHED_OTHER, &none);
}

static void limit_real_time(void)
{
    struct rlimit limit = {LONGEST_BURST_US, RLIM_INFINITY};
    struct sigaction action = {.sa_handler = give_way, .sa_flags = SA_RESTART};
    sigaction(SIGXCPU, &action, NULL);
    setrlimit(RLIMIT_RTTIME, &limit);
}

/* All threads: a rank that waits looks at the sockets of Open MPI's own threads, too, and would keep from them the
   processor on which they are to read what has come. */
static void run_in_real_time(void)
{
    struct sched_param priority = {(int)number("PACE_REAL_TIME")};
    struct dirent *entry;
    if (is_in_real_time || priority.sched_priority <= 0)
        return;
    limit_real_time(); /* as late as this: Fortran's runtime has its own handler when a program begins */
    DIR *threads = opendir("/proc/self/task");
    while (threads != NULL && (entry = readdir(threads)) != NULL)
        if (atoi(entry->d_name) > 0 && sched_setscheduler(atoi(entry->d_name), SCHED_FIFO, &priority) != 0 &&
            errno != ESRCH) { /* it may have ended meanwhile */
            perror("pace: real time");
            abort();
        }
    if (threads != NULL)
        closedir(threads);
    is_in_real_time = 1;
}

/* ---- pace ---- */

/* Sleep until `wanted` seconds have passed since a call began. */
static void settle(double began, double wanted)
{
    double done = now(), end = began + wanted + credit;
    calls++;
    charged += wanted;
    if (end - done > SHORTEST_SLEEP) {
        run_in_real_time();
        sleep_until(end);
        double woken = now();
        slept += woken - done;
        done = woken;
    }
    credit = end - done;
    if (credit < -LARGEST_CREDIT) {
        late += -LARGEST_CREDIT - credit;
        credit = -LARGEST_CREDIT;
    }
}

/* ---- beginning and end ---- */

static void start_pacing(void)
{
    is_paced = 1;
    prctl(PR_SET_TIMERSLACK, 1000UL);
    ask_for_short_slices();
}

/* How long this process was fit to run and had no processor [s]; -1 where the kernel does not count it. */
static double delayed(void)
{
    double ran, waited;
    FILE *file = fopen("/proc/self/schedstat", "r");
    int found = file ? fscanf(file, "%lf %lf", &ran, &waited) : 0;
    if (file)
        fclose(file);
    return found == 2 ? 1e-9 * waited : -1.0;
}

__attribute__((destructor)) static void report(void)
{
    char line[512], more[64] = "";
    if (!is_paced)
        return;
    if (stretch > 0.0)
        snprintf(more, sizeof more, " stretch %.6g elapsed %.6f", stretch, elapsed);
    /* One write, so that the lines of several ranks do not mix. */
    int length = snprintf(line, sizeof line,
                          "pace: rank %s calls %ld charged %.6f computed %.6f slept %.6f paused %.6f late %.6f "
                          "delayed %.6f waits %ld timeouts %ld%s\n",
                          rank(), calls, charged, computed, slept, paused, late, delayed(), waits, timeouts, more);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "pace: the program's libraries have no %s\n", name);
        abort();
    }
    return found;
}

/* ---- waiting ---- */

/* Open MPI looks at its sockets in one of eight calls of opal_progress, and yields once more although the message that
   it waits for has just come. After so many yields in which nothing was read or written, nothing is there: a rank can
   sleep until its sockets have news. The longest wait is for what might come another way. */
#define FRUITLESS 20
#define LONGEST_WAIT_NS 20000000
#define LOOK_AGAIN_S 0.25
#define MOST_FILES 16

static __thread int fruitless;

/* Calls the library's function of that name and remembers that something came or went. */
#define SEEN(name, parameters, arguments)                                                                             \
    ssize_t name parameters                                                                                           \
    {                                                                                                                 \
        static ssize_t (*real) parameters;                                                                            \
        if (real == NULL)                                                                                             \
            real = (ssize_t (*) parameters)next(#name);                                                               \
        ssize_t moved = real arguments;                                                                               \
        if (moved > 0)                                                                                                \
            fruitless = 0;                                                                                            \
        return moved;                                                                                                 \
    }

SEEN(readv, (int file, const struct iovec *parts, int number), (file, parts, number))
SEEN(writev, (int file, const struct iovec *parts, int number), (file, parts, number))
SEEN(recv, (int file, void *to, size_t size, int flags), (file, to, size, flags))
SEEN(send, (int file, const void *from, size_t size, int flags), (file, from, size, flags))

/* Open MPI's own sets of the sockets that it listens to, and of those whose buffer it wants room in
   (opal_event_include epoll): whichever has news for it makes its set readable. */
static struct pollfd sets[MOST_FILES];
static nfds_t known;
static double looked;

static void look_for_sets(void)
{
    char name[64], target[64];
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/fd");
    known = 0;
    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL && known < MOST_FILES) {
        snprintf(name, sizeof name, "/proc/self/fd/%.20s", entry->d_name);
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length > 0 && (target[length] = '\0', strcmp(target, "anon_inode:[eventpoll]") == 0)) {
            sets[known].fd = atoi(entry->d_name);
            sets[known++].events = POLLIN;
        }
    }
    closedir(folder);
}

static void wait_for_news(long most_ns)
{
    struct timespec most = {0, most_ns};
    fruitless = 0;
    if (known == 0 || now() - looked > LOOK_AGAIN_S) {
        look_for_sets();
        looked = now();
    }
    if (is_begun)
        run_in_real_time();
    waits++;
    timeouts += ppoll(sets, known, &most, NULL) == 0;
}

int sched_yield(void)
{
    static int (*real)(void);
    if (!is_paced) {
        if (real == NULL)
            real = (int (*)(void))next("sched_yield");
        return real();
    }
    if (++fruitless >= FRUITLESS)
        wait_for_news(LONGEST_WAIT_NS);
    return 0;
}
