/* usage: paced FUNCTION REPEATS N
 * Calls a level-3 routine of BLAS on matrices of order N so many times and prints one element of the result, the
 * seconds that it took and the CPU seconds. FUNCTION `wait`: MPI rank 0 computes while rank 1 waits for its message. */
#include <cblas.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *);

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    const char *name = argv[1];
    int repeats = atoi(argv[2]), n = atoi(argv[3]), rank = 0, is_mpi = !strcmp(name, "wait");
    double one = 1.0, zero = 0.0, *a = malloc(sizeof *a * n * n), *b = malloc(sizeof *b * n * n);
    double *c = calloc((size_t)n * n, sizeof *c);
    double complex_one[2] = {1.0, 0.0}, complex_zero[2] = {0.0, 0.0};
    double *za = calloc(2 * (size_t)n * n, sizeof *za), *zc = calloc(2 * (size_t)n * n, sizeof *zc);
    (void)argc;
    for (int i = 0; i < n * n; i++) {
        a[i] = i % (n + 1) == 0 ? 2.0 : 0.0; /* twice the identity */
        b[i] = 3.0;
        za[2 * i] = a[i];
    }
    if (is_mpi) {
        MPI_Init(NULL, NULL);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    double began = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID), result = 0.0;
    for (int i = 0; i < repeats; i++) {
        if (!strcmp(name, "cblas_dgemm") || (is_mpi && rank == 0))
            cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a, n, b, n, 0.0, c, n), result = c[1];
        else if (!strcmp(name, "dgemm_"))
            dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n), result = c[1];
        else if (!strcmp(name, "cblas_dsyrk"))
            cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, n, 1.0, a, n, 0.0, c, n), result = c[0] + 2.0;
        else if (!strcmp(name, "cblas_zgemm"))
            cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, complex_one, za, n, za, n, complex_zero, zc, n),
                result = zc[0] + 2.0;
        else if (!strcmp(name, "dtrsm_"))
            memcpy(c, b, sizeof *b * n * n), dtrsm_("L", "L", "N", "N", &n, &n, &one, a, &n, c, &n), result = 4.0 * c[1];
        else if (!strcmp(name, "level_2"))
            cblas_dgemv(CblasColMajor, CblasNoTrans, n, n, 1.0, a, n, b, 1, 0.0, c, 1), result = c[1];
    }
    if (is_mpi) {
        if (rank == 0)
            MPI_Send(&result, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(&result, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("%d %.6f %.6f %.6f\n", rank, result, seconds(CLOCK_MONOTONIC) - began, seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
    if (is_mpi)
        MPI_Finalize();
    return 0;
}
