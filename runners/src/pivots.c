/*
 * The rows in which HPL finds its pivots, written to pivots.txt in the working directory, `column row` a line:
 * with that file beside its HPL.dat the simulation (simulated_hpl.c) sends the same rows to the same nodes.
 * The linker wraps the function that ends a panel's broadcast: then every node knows its pivots.
 */
#include "hpl.h"

int __real_HPL_bwait(HPL_T_panel *panel);

int __wrap_HPL_bwait(HPL_T_panel *panel)
{
    int result = __real_HPL_bwait(panel);
    if (panel->grid->iam == 0) {
        FILE *file = fopen("pivots.txt", "a");
        if (file == NULL)
            HPL_pabort(__LINE__, "xhpl_unmocked", "pivots.txt cannot be written");
        for (int j = 0; j < panel->jb; j++)
            fprintf(file, "%d %d\n", panel->ia + j, (int)panel->DPIV[j]);
        fclose(file);
    }
    return result;
}
