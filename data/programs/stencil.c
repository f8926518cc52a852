/*
 * A stencil, as an example of a program whose ranks talk to their neighbours: Jacobi steps on a square grid that is cut
 * into bands of rows, and every step the largest change.
 *
 *   mpicc -O2 stencil.c -o stencil -lm
 *   falloff profile --keep stencil -- mpirun -np 4 ./stencil
 *
 * Numbers after it are how many steps it makes, and the grid's side.
 */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

enum { SIDE = 4096, STEPS = 40 };

int main(int argc, char **argv)
{
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : STEPS, side = argc > 2 ? atoi(argv[2]) : SIDE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (side % ranks)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int rows = side / ranks, above = rank ? rank - 1 : MPI_PROC_NULL, below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    size_t size = (size_t)(rows + 2) * side;
    double *old = malloc(size * sizeof *old), *new = malloc(size * sizeof *new);
    for (size_t i = 0; i < size; i++)
        old[i] = new[i] = (double)(i % 1000);

    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        double change = 0.0, largest;
        MPI_Sendrecv(old + side, side, MPI_DOUBLE, above, 1, old + (size_t)(rows + 1) * side, side, MPI_DOUBLE, below, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(old + (size_t)rows * side, side, MPI_DOUBLE, below, 2, old, side, MPI_DOUBLE, above, 2,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int row = 1; row <= rows; row++)
            for (int column = 1; column < side - 1; column++) {
                size_t i = (size_t)row * side + (size_t)column;
                new[i] = 0.25 * (old[i - side] + old[i + side] + old[i - 1] + old[i + 1]);
                change = fmax(change, fabs(new[i] - old[i]));
            }
        MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        double *other = old;
        old = new, new = other;
    }
    MPI_Finalize();
    free(old);
    free(new);
    return 0;
}
