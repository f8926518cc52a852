/*
 * Loaded into the ranks of an MPI program (LD_PRELOAD), this makes each of them a node of a known speed.
 *
 * PACE_FLOP_S   flop/s of the node. Every call of a level-3 BLAS computes for real, so that results can be checked,
 *               and then sleeps until flops / PACE_FLOP_S seconds have passed since it began. Without it nothing is
 *               changed.
 * PACE_SHARE    of that rate, which this node has: a planted fault.
 * PACE_REAL_TIME
 *               the priority (sched(7), SCHED_FIFO) with which a rank is paced, and waits between MPI_Init and
 *               MPI_Finalize. Whatever else computes for milliseconds on end, as making or checking a matrix, goes on
 *               without it: it would keep the processors from the ranks that wait for theirs.
 * PACE_PAUSE_S, PACE_PAUSE_HZ
 *               a daemon that takes such a pause from the node so many times in a second of computing, at random
 *               (Poisson). PACE_SEED and the rank choose the times.
 *
 * Paced are all level-3 routines of BLAS in four precisions, by their CBLAS and Fortran names. Not paced is what else
 * a program computes: levels 1 and 2 of BLAS, interfaces with 64-bit integers, a BLAS that is linked statically, loops
 * and copies of the program's own. They run as fast as the machine does.
 *
 * A rank that waits for messages sleeps. Open MPI calls sched_yield when it has nothing to do
 * (mpi_yield_when_idle 1); here that waits until one of the sockets that it listens to has news.
 *
 * At its end a rank says on stderr: calls of BLAS; seconds charged, computed, slept and paused; late, by how much it
 * missed its times beyond what a later call could make up; delayed, how long the kernel let it wait for a processor;
 * how often it waited for messages, and how often in vain.
 */
#define _GNU_SOURCE
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

static double flop_s;                   /* 0: not paced */
static double pause_s, pause_hz;        /* of the daemon */
static double computing_to_next_pause;  /* s */
static unsigned short dice[3];

static long calls;
static double charged, computed, slept, paused, late;
static double credit;  /* s to the time at which the last call should have ended; below 0 the next one makes it up */
static long waits, timeouts;

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

static double exponential(double mean)
{
    return -mean * log(1.0 - erand48(dice));
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

/* All threads: a rank that waits looks at the sockets of Open MPI's own threads, too, and would keep from them the
   processor on which they are to read what has come. */
static void run_in_real_time(void)
{
    struct sched_param priority = {(int)number("PACE_REAL_TIME")};
    struct dirent *entry;
    if (is_in_real_time || priority.sched_priority <= 0)
        return;
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

/* ---- beginning and end ---- */

__attribute__((constructor)) static void begin(void)
{
    flop_s = number("PACE_FLOP_S") * (getenv("PACE_SHARE") ? number("PACE_SHARE") : 1.0);
    pause_s = number("PACE_PAUSE_S");
    pause_hz = number("PACE_PAUSE_HZ");
    dice[0] = (unsigned short)atoi(rank());
    dice[1] = (unsigned short)number("PACE_SEED");
    dice[2] = 0x330e;
    if (pause_hz > 0.0)
        computing_to_next_pause = exponential(1.0 / pause_hz);
    if (flop_s > 0.0) {
        prctl(PR_SET_TIMERSLACK, 1000UL);
        ask_for_short_slices();
        if (number("PACE_REAL_TIME") > 0.0)
            limit_real_time();
    }
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
    char line[512];
    if (flop_s <= 0.0)
        return;
    /* One write, so that the lines of several ranks do not mix. */
    int length = snprintf(line, sizeof line,
                          "pace: rank %s calls %ld charged %.6f computed %.6f slept %.6f paused %.6f late %.6f "
                          "delayed %.6f waits %ld timeouts %ld\n",
                          rank(), calls, charged, computed, slept, paused, late, delayed(), waits, timeouts);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

/* The pauses that the daemon takes while the node computes for so many seconds. */
static double pauses_in(double seconds)
{
    double taken = 0.0;
    if (pause_hz <= 0.0)
        return 0.0;
    computing_to_next_pause -= seconds;
    while (computing_to_next_pause <= 0.0) {
        taken += pause_s;
        computing_to_next_pause += exponential(1.0 / pause_hz);
    }
    return taken;
}

static void settle(double began, double flops)
{
    double done = now(), wanted = flops / flop_s, taken = pauses_in(wanted);
    double end = began + wanted + taken + credit;
    calls++;
    charged += wanted;
    paused += taken;
    computed += done - began;
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

/* ---- level-3 BLAS ---- */

static __thread int depth;  /* a CBLAS may be made of calls by the Fortran names: only the outermost is charged */

static double enter(void)
{
    if (flop_s > 0.0)
        run_in_real_time();
    return depth++ == 0 ? now() : 0.0;
}

static void leave(double began, double flops)
{
    if (--depth == 0 && flop_s > 0.0)
        settle(began, flops);
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

/* Declares the function as the library has it, looks the next of that name up once, calls and charges. */
#define PACED(name, parameters, arguments, flops)                                                                     \
    void name parameters                                                                                             \
    {                                                                                                                 \
        static void (*real) parameters;                                                                               \
        if (real == NULL)                                                                                             \
            real = (void (*) parameters)next(#name);                                                                  \
        double began = enter();                                                                                       \
        real arguments;                                                                                               \
        leave(began, flops);                                                                                          \
    }

enum { LEFT = 141 };
#define ORDER(is_left, m, n) ((is_left) ? (double)(m) : (double)(n))
#define IS_LEFT(side) (*(side) == 'L' || *(side) == 'l')

/* `unit` is what a multiplication and an addition count: 1 and 1, of complex numbers 6 and 2 (LAPACK Working Note 41). */
#define CBLAS(type, real_scalar, scalar, unit)                                                                        \
    PACED(cblas_##type##gemm,                                                                                         \
          (int o, int ta, int tb, int m, int n, int k, scalar alpha, const void *a, int lda, const void *b, int ldb,  \
           scalar beta, void *c, int ldc),                                                                            \
          (o, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), (unit) * 2.0 * m * n * k)                        \
    PACED(cblas_##type##symm,                                                                                         \
          (int o, int side, int u, int m, int n, scalar alpha, const void *a, int lda, const void *b, int ldb,        \
           scalar beta, void *c, int ldc),                                                                            \
          (o, side, u, m, n, alpha, a, lda, b, ldb, beta, c, ldc),                                                    \
          (unit) * 2.0 * m * n * ORDER(side == LEFT, m, n))                                                           \
    PACED(cblas_##type##syrk,                                                                                         \
          (int o, int u, int t, int n, int k, scalar alpha, const void *a, int lda, scalar beta, void *c, int ldc),   \
          (o, u, t, n, k, alpha, a, lda, beta, c, ldc), (unit) * 1.0 * n * (n + 1.0) * k)                             \
    PACED(cblas_##type##syr2k,                                                                                        \
          (int o, int u, int t, int n, int k, scalar alpha, const void *a, int lda, const void *b, int ldb,           \
           scalar beta, void *c, int ldc),                                                                            \
          (o, u, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc), (unit) * 2.0 * n * (n + 1.0) * k)                     \
    PACED(cblas_##type##trmm,                                                                                         \
          (int o, int side, int u, int t, int d, int m, int n, scalar alpha, const void *a, int lda, void *b,         \
           int ldb),                                                                                                  \
          (o, side, u, t, d, m, n, alpha, a, lda, b, ldb), (unit) * 1.0 * m * n * ORDER(side == LEFT, m, n))          \
    PACED(cblas_##type##trsm,                                                                                         \
          (int o, int side, int u, int t, int d, int m, int n, scalar alpha, const void *a, int lda, void *b,         \
           int ldb),                                                                                                  \
          (o, side, u, t, d, m, n, alpha, a, lda, b, ldb), (unit) * 1.0 * m * n * ORDER(side == LEFT, m, n))

#define HERMITIAN_CBLAS(type, real_scalar)                                                                            \
    PACED(cblas_##type##hemm,                                                                                         \
          (int o, int side, int u, int m, int n, const void *alpha, const void *a, int lda, const void *b, int ldb,   \
           const void *beta, void *c, int ldc),                                                                       \
          (o, side, u, m, n, alpha, a, lda, b, ldb, beta, c, ldc), 8.0 * m * n * ORDER(side == LEFT, m, n))           \
    PACED(cblas_##type##herk,                                                                                         \
          (int o, int u, int t, int n, int k, real_scalar alpha, const void *a, int lda, real_scalar beta, void *c,   \
           int ldc),                                                                                                  \
          (o, u, t, n, k, alpha, a, lda, beta, c, ldc), 4.0 * n * (n + 1.0) * k)                                      \
    PACED(cblas_##type##her2k,                                                                                        \
          (int o, int u, int t, int n, int k, const void *alpha, const void *a, int lda, const void *b, int ldb,      \
           real_scalar beta, void *c, int ldc),                                                                       \
          (o, u, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc), 8.0 * n * (n + 1.0) * k)

/* Fortran passes everything by address, and behind it the lengths of texts, which are all of one letter. */
#define FORTRAN(type, unit)                                                                                           \
    PACED(type##gemm_,                                                                                                \
          (const char *ta, const char *tb, const int *m, const int *n, const int *k, const void *alpha,               \
           const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc,   \
           size_t l1, size_t l2),                                                                                     \
          (ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1), (unit) * 2.0 * *m * *n * *k)                  \
    TWO_SIDED(type##symm_, unit)                                                                                      \
    RANK_K(type##syrk_, unit)                                                                                         \
    RANK_2K(type##syr2k_, unit)                                                                                       \
    TRIANGULAR(type##trmm_, unit)                                                                                     \
    TRIANGULAR(type##trsm_, unit)

#define TWO_SIDED(name, unit)                                                                                         \
    PACED(name,                                                                                                       \
          (const char *side, const char *u, const int *m, const int *n, const void *alpha, const void *a,             \
           const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc, size_t l1,       \
           size_t l2),                                                                                                \
          (side, u, m, n, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1),                                                 \
          (unit) * 2.0 * *m * *n * ORDER(IS_LEFT(side), *m, *n))
#define RANK_K(name, unit)                                                                                            \
    PACED(name,                                                                                                       \
          (const char *u, const char *t, const int *n, const int *k, const void *alpha, const void *a,                \
           const int *lda, const void *beta, void *c, const int *ldc, size_t l1, size_t l2),                          \
          (u, t, n, k, alpha, a, lda, beta, c, ldc, 1, 1), (unit) * 1.0 * *n * (*n + 1.0) * *k)
#define RANK_2K(name, unit)                                                                                           \
    PACED(name,                                                                                                       \
          (const char *u, const char *t, const int *n, const int *k, const void *alpha, const void *a,                \
           const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc, size_t l1,       \
           size_t l2),                                                                                                \
          (u, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1), (unit) * 2.0 * *n * (*n + 1.0) * *k)
#define TRIANGULAR(name, unit)                                                                                        \
    PACED(name,                                                                                                       \
          (const char *side, const char *u, const char *t, const char *d, const int *m, const int *n,                 \
           const void *alpha, const void *a, const int *lda, void *b, const int *ldb, size_t l1, size_t l2,           \
           size_t l3, size_t l4),                                                                                     \
          (side, u, t, d, m, n, alpha, a, lda, b, ldb, 1, 1, 1, 1),                                                   \
          (unit) * 1.0 * *m * *n * ORDER(IS_LEFT(side), *m, *n))

/* ---- MPI ---- */

static int is_begun;

int MPI_Init(int *argc, char ***argv)
{
    int error = ((int (*)(int *, char ***))next("MPI_Init"))(argc, argv);
    is_begun = 1;
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = ((int (*)(int *, char ***, int, int *))next("MPI_Init_thread"))(argc, argv, required, provided);
    is_begun = 1;
    return error;
}

int MPI_Finalize(void)
{
    is_begun = 0;
    return ((int (*)(void))next("MPI_Finalize"))();
}

void mpi_init_(int *error)
{
    ((void (*)(int *))next("mpi_init_"))(error);
    is_begun = 1;
}

void mpi_finalize_(int *error)
{
    is_begun = 0;
    ((void (*)(int *))next("mpi_finalize_"))(error);
}

/* ---- level-3 BLAS: the routines ---- */

CBLAS(s, float, float, 1)
CBLAS(d, double, double, 1)
CBLAS(c, float, const void *, 4)
CBLAS(z, double, const void *, 4)
HERMITIAN_CBLAS(c, float)
HERMITIAN_CBLAS(z, double)
FORTRAN(s, 1)
FORTRAN(d, 1)
FORTRAN(c, 4)
FORTRAN(z, 4)
TWO_SIDED(chemm_, 4)
TWO_SIDED(zhemm_, 4)
RANK_K(cherk_, 4)
RANK_K(zherk_, 4)
RANK_2K(cher2k_, 4)
RANK_2K(zher2k_, 4)

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

int sched_yield(void)
{
    static int (*real)(void);
    struct timespec longest = {0, LONGEST_WAIT_NS};
    if (flop_s <= 0.0) {
        if (real == NULL)
            real = (int (*)(void))next("sched_yield");
        return real();
    }
    if (++fruitless < FRUITLESS)
        return 0;
    fruitless = 0;
    if (known == 0 || now() - looked > LOOK_AGAIN_S) {
        look_for_sets();
        looked = now();
    }
    if (is_begun)
        run_in_real_time();
    waits++;
    timeouts += ppoll(sets, known, &longest, NULL) == 0;
    return 0;
}
