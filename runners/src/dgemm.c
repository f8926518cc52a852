/*
 * The DGEMM rate of every node while all nodes compute: C := C - A B with C n x n and inner
 * dimension k, the shape of HPL's trailing update with k = NB.
 *
 * usage: dgemm N K SECONDS   (an MPI program, one process a node)
 *
 * After one untimed pass (first touch of the memory, threads started) all ranks leave a barrier
 * together and repeat the product until SECONDS have passed, so that each rank is measured
 * while the others still compute. Operations are counted as 2 n n k a product.
 */
#include <cblas.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double *matrix(size_t elements)
{
    double *a = malloc(elements * sizeof *a);
    if (a == NULL) {
        fprintf(stderr, "dgemm: no memory for %zu numbers\n", elements);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (size_t i = 0; i < elements; i++)
        a[i] = (double)(i % 1000) / 1000.0 - 0.5;
    return a;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    int n = argc == 4 ? atoi(argv[1]) : 0;
    int k = argc == 4 ? atoi(argv[2]) : 0;
    double window = argc == 4 ? atof(argv[3]) : 0.0;
    if (n < 1 || k < 1 || window <= 0.0) {
        if (rank == 0)
            fprintf(stderr, "usage: dgemm N K SECONDS, all above 0\n");
        MPI_Finalize();
        return 2;
    }

    double *a = matrix((size_t)n * k), *b = matrix((size_t)k * n), *c = matrix((size_t)n * n);
    double repetitions = -1.0, start = 0.0, elapsed = 0.0;
    while (elapsed < window) {
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, k, -1.0, a, n, b, k, 1.0, c, n);
        if (++repetitions == 0.0) {
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        } else {
            elapsed = MPI_Wtime() - start;
        }
    }

    double mine[3] = {2.0 * n * n * k * repetitions / elapsed / 1e9, elapsed, repetitions};
    double *all = malloc(3 * (size_t)ranks * sizeof *all);
    MPI_Gather(mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("dgemm: n = %d, k = %d, window %g s, %d ranks\n", n, k, window, ranks);
        printf("rank       Gflop/s             s  repetitions\n");
        for (int r = 0; r < ranks; r++)
            printf("%4d %13.6f %13.6f %12.0f\n", r, all[3 * r], all[3 * r + 1], all[3 * r + 2]);
        printf("end of dgemm\n");
    }
    MPI_Finalize();
    return 0;
}
