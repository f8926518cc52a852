/*
 * An exchange of all with all, as an example of a program whose ranks talk to everybody: a square matrix, cut into bands of
 * rows, is worked on row by row and transposed, as in a Fourier transform of two dimensions.
 *
 *   mpicc -O2 transpose.c -o transpose -lm
 *   falloff profile --keep transpose -- mpirun -np 4 ./transpose
 *
 * A number after it is how many steps it makes.
 */
#include <mpi.h>
#include <stdlib.h>

enum { SIDE = 2048, STEPS = 40, PASSES = 11 };

int main(int argc, char **argv)
{
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : STEPS;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (SIDE % ranks)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int rows = SIDE / ranks;
    size_t size = (size_t)rows * SIDE;
    double *mine = malloc(size * sizeof *mine), *packed = malloc(size * sizeof *packed);
    for (size_t i = 0; i < size; i++)
        mine[i] = (double)(i % 1000);

    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        for (int row = 0; row < rows; row++)
            for (int pass = 0; pass < PASSES; pass++) /* as many as a transform of a row has */
                for (int column = 0, half = SIDE / 2; column < half; column++) {
                    double *a = mine + (size_t)row * SIDE + column, *b = a + half, sum = *a + *b;
                    *b = 0.5 * (*a - *b);
                    *a = 0.5 * sum;
                }
        for (int to = 0, i = 0; to < ranks; to++)
            for (int column = to * rows; column < (to + 1) * rows; column++)
                for (int row = 0; row < rows; row++)
                    packed[i++] = mine[(size_t)row * SIDE + column];
        MPI_Alltoall(packed, rows * rows, MPI_DOUBLE, mine, rows * rows, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    free(mine);
    free(packed);
    return 0;
}
