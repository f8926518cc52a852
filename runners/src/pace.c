/*
 * Loaded into the ranks of an MPI program (LD_PRELOAD), this makes each of them a node of a known speed.
 *
 * PACE_FLOP_S   flop/s of the node. Every call of a level-3 BLAS computes for real, so that results can be checked,
 *               and then sleeps until flops / PACE_FLOP_S seconds have passed since it began. Without it nothing is
 *               changed.
 * PACE_SHARE    of that rate, which this node has: a planted fault.
 * PACE_REAL_TIME
 *               the priority of a rank that is paced or waits (pace_node.h)
 * PACE_PAUSE_S, PACE_PAUSE_HZ
 *               a daemon that takes such a pause from the node so many times in a second of computing, at random
 *               (Poisson). PACE_SEED and the rank choose the times.
 *
 * Paced are all level-3 routines of BLAS in four precisions, by their CBLAS and Fortran names. Not paced is what else
 * a program computes: levels 1 and 2 of BLAS, interfaces with 64-bit integers, a BLAS that is linked statically, loops
 * and copies of the program's own. They run as fast as the machine does.
 */
#define _GNU_SOURCE
#include "pace_node.h"

/* ---- the node ---- */

static double flop_s;
static double pause_s, pause_hz;        /* of the daemon */
static double computing_to_next_pause;  /* s */
static unsigned short dice[3];

static double exponential(double mean)
{
    return -mean * log(1.0 - erand48(dice));
}

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
    if (flop_s > 0.0)
        start_pacing();
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

/* ---- level-3 BLAS ---- */

static __thread int depth;  /* a CBLAS may be made of calls by the Fortran names: only the outermost is charged */

static double enter(void)
{
    if (is_paced)
        run_in_real_time();
    return depth++ == 0 ? now() : 0.0;
}

/* What the daemon takes is no computing. */
static void pace(double began, double flops)
{
    double wanted = flops / flop_s, taken = pauses_in(wanted);
    computed += now() - began;
    paused += taken;
    settle(began, wanted + taken);
    charged -= taken;
}

static void leave(double began, double flops)
{
    if (--depth == 0 && is_paced)
        pace(began, flops);
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
