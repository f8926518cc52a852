/*
 * A main program for the HPL inside HPC Challenge, which has none of its own: there HPL is a
 * function, HPL_main, of a larger benchmark. Where HPC Challenge would go on with settings of
 * its own when HPL.dat cannot be read, this ends the run.
 */
#include <string.h>

#include "hpl.h"

int HPCC_Defaults(void)
{
    fprintf(stderr, "xhpl: HPL.dat cannot be read or asks for what cannot be run\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

int main(int argc, char **argv)
{
    HPL_RuntimeData best;
    int failure = 0;

    memset(&best, 0, sizeof best);
    MPI_Init(&argc, &argv);
    HPL_main(argc, argv, &best, &failure);
    MPI_Finalize();
    /* As with netlib's xhpl a failed residual check is told by the output, not by the exit code. */
    return 0;
}
