/*
 * What HPL computes, replaced by the time that it would take: the BLAS, and HPL's own functions that
 * search, swap or copy. The linker takes what is defined here and leaves HPL's object of that name
 * in the archive; of the two functions that are wrapped it keeps the original too (--wrap).
 *
 * Of the numbers that HPL handles only the pivots' row numbers matter: they decide who sends which
 * rows to whom. They are drawn, or given by a file, for all nodes alike; no other number is ever looked at.
 */
#include <stdint.h>

#include "hpl.h"
#include "simulated.h"

void *__real_malloc(size_t size);
void __real_free(void *block);

/* ---- pivots ---- */

/* A row in which column `column` of an n x n matrix may find its pivot: any that is left, with equal chance. */
static int drawn_row(int column, int n)
{
    uint64_t x = (uint64_t)column * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u; /* SplitMix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return column + (int)((x ^ (x >> 31)) % (uint64_t)(n - column));
}

/* The rows that pivots.txt in the working directory gives, `column row` a line; NULL where there is no such file. */
static int *given_rows(int n)
{
    int *rows, column, row;
    FILE *file = fopen("pivots.txt", "r");
    if (file == NULL)
        return NULL;
    rows = __real_malloc((size_t)n * sizeof *rows);
    for (column = 0; column < n; column++)
        rows[column] = -1;
    while (fscanf(file, "%d %d", &column, &row) == 2)
        if (column >= 0 && column < n)
            rows[column] = row;
    fclose(file);
    for (column = 0; column < n; column++)
        if (rows[column] < column || rows[column] >= n)
            HPL_pabort(__LINE__, "xhpl_simulated", "pivots.txt has no row from %d to %d for column %d of N = %d",
                       column, n - 1, column, n);
    return rows;
}

static int pivot_row(int column, int n)
{
    static int *given, order; /* of which N */
    if (order != n) {
        __real_free(given);
        given = given_rows(n);
        order = n;
    }
    return given != NULL ? given[column] : drawn_row(column, n);
}

/* Stands for the search of the pivot in this node's rows: every node of the column knows whose it is. */
void HPL_dlocmax(HPL_T_panel *panel, const int n, const int ii, const int jj, double *work)
{
    int row = pivot_row(panel->ia + jj, panel->pmat->n);
    charge_node(n);
    work[0] = 1.0; /* the pivot; 0 would end the factorisation */
    work[1] = 0.0;
    work[2] = row;
    work[3] = HPL_indxg2p(row, panel->nb, panel->nb, 0, panel->grid->nprow);
}

void __real_HPL_pdpanel_init(HPL_T_grid *, HPL_T_palg *, const int, const int, const int, HPL_T_pmat *,
                             const int, const int, const int, HPL_T_panel *);
int __real_HPL_pdpanel_free(HPL_T_panel *);

/* The panel lies in folded memory but for its pivots and its error flag: each node has its own. */
void __wrap_HPL_pdpanel_init(HPL_T_grid *grid, HPL_T_palg *algo, const int m, const int n, const int jb,
                             HPL_T_pmat *a, const int ia, const int ja, const int tag, HPL_T_panel *panel)
{
    __real_HPL_pdpanel_init(grid, algo, m, n, jb, a, ia, ja, tag, panel);
    panel->DPIV = __real_malloc((size_t)(jb + 1) * sizeof(double));
    for (int j = 0; j < jb; j++)
        panel->DPIV[j] = pivot_row(ia + j, a->n);
    panel->DINFO = panel->DPIV + jb;
    *panel->DINFO = 0.0;
    /* Without look-ahead HPL asks only when it waits. With it a node may be absent from all steps of a row swap
       (log2 P of them, twice for each row of the grid when the swap is equilibrated) and asks after each. */
    patience = algo->depth == 0 ? 0 : 2 * grid->nprow * (grid->row_hdim + 2);
}

int __wrap_HPL_pdpanel_free(HPL_T_panel *panel)
{
    double *own = panel->DPIV;
    int result = __real_HPL_pdpanel_free(panel);
    __real_free(own);
    return result;
}

/* ---- what is not done at all ---- */

void HPL_pdmatgen(const HPL_T_grid *grid, const int m, const int n, const int nb, double *a, const int lda,
                  const int seed)
{
}

/* Asked for only to check the solution, which THRESHOLD <= 0 in HPL.dat leaves out. */
double HPL_pdlange(const HPL_T_grid *grid, const HPL_T_NORM norm, const int m, const int n, const int nb,
                   const double *a, const int lda)
{
    HPL_pabort(__LINE__, "xhpl_simulated", "nothing is computed, so nothing can be checked: THRESHOLD <= 0");
    return 0.0;
}

/* HPL prints wall-clock times only: the simulator's own CPU time need not be asked for. */
double HPL_ptimer_cputime(void)
{
    return 0.0;
}

/* ---- the BLAS ---- */

void cblas_dgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE ta, const enum CBLAS_TRANSPOSE tb,
                 const int m, const int n, const int k, const double alpha, const double *a, const int lda,
                 const double *b, const int ldb, const double beta, double *c, const int ldc)
{
    charge_dgemm(m, n, k);
}

void cblas_dtrsm(const enum CBLAS_ORDER order, const enum CBLAS_SIDE side, const enum CBLAS_UPLO uplo,
                 const enum CBLAS_TRANSPOSE trans, const enum CBLAS_DIAG diag, const int m, const int n,
                 const double alpha, const double *a, const int lda, double *b, const int ldb)
{
    if (m == 0 || n == 0) /* only in HPL's update, after its last column, when the panel has still not come */
        wait_from_now_on();
    if (side == CblasLeft)
        charge_dtrsm(m, n);
    else
        charge_dtrsm(n, m);
}

void cblas_dgemv(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE trans, const int m, const int n,
                 const double alpha, const double *a, const int lda, const double *x, const int incx,
                 const double beta, double *y, const int incy)
{
    if (n > 0)
        charge_node((double)m * n + 2.0 * m);
}

void cblas_dger(const enum CBLAS_ORDER order, const int m, const int n, const double alpha, const double *x,
                const int incx, const double *y, const int incy, double *a, const int lda)
{
    charge_node(2.0 * m * n);
}

void cblas_dtrsv(const enum CBLAS_ORDER order, const enum CBLAS_UPLO uplo, const enum CBLAS_TRANSPOSE trans,
                 const enum CBLAS_DIAG diag, const int n, const double *a, const int lda, double *x,
                 const int incx)
{
    charge_core(0.5 * n * n);
}

void cblas_daxpy(const int n, const double alpha, const double *x, const int incx, double *y, const int incy)
{
    charge_core(3.0 * n);
}

void cblas_dscal(const int n, const double alpha, double *x, const int incx)
{
    charge_node(2.0 * n);
}

void cblas_dcopy(const int n, const double *x, const int incx, double *y, const int incy)
{
    if (incx == 1 && incy == 1)
        charge_core(2.0 * n);
    else
        charge_strided(n);
}

/* Of HPL's check of the solution, which is never reached. */
CBLAS_INDEX cblas_idamax(const int n, const double *x, const int incx)
{
    return 0;
}

/* ---- HPL's own loops ---- */

/* Row numbers are exchanged: `touched` rows of the panel are, element by element, read or written. */
static void swap_in_panel(const HPL_T_panel *panel, const double *work)
{
    int owner = (int)work[3], me = panel->grid->myrow;
    charge_strided((double)panel->jb * ((me == panel->prow) + (me == owner)));
}

void HPL_dlocswpN(HPL_T_panel *panel, const int ii, const int jj, double *work)
{
    swap_in_panel(panel, work);
}

void HPL_dlocswpT(HPL_T_panel *panel, const int ii, const int jj, double *work)
{
    swap_in_panel(panel, work);
}

/* So many rows of so many numbers each, every one read here and written there. */
static void move(double rows, double columns)
{
    if (rows > 0 && columns > 0)
        charge_core(2.0 * rows * columns);
}

void HPL_dlacpy(const int m, const int n, const double *a, const int lda, double *b, const int ldb)
{
    move(m, n);
}

void HPL_dlatcpy(const int m, const int n, const double *a, const int lda, double *b, const int ldb)
{
    move(m, n);
}

/* HPL_dlaswp..: the row swaps of the update. Every element of a row of A lies in a cache line of its own, which
   takes longer than what U and the workspace take beside it; 03 moves rows between these two only. */
static void visit(double rows, double columns)
{
    if (rows > 0 && columns > 0)
        charge_strided(rows * columns);
}

#define MATRIX const int m, const int n, double *a, const int lda
#define AND_U double *u, const int ldu
#define ROWS_OF_A const int *rows
#define ROWS_OF_U const int *to
#define AND_W const double *w0, const double *w, const int ldw

void HPL_dlaswp00N(MATRIX, ROWS_OF_A) { visit(2.0 * m, n); }
void HPL_dlaswp10N(MATRIX, ROWS_OF_A) { move(m, n); } /* columns, not rows */
void HPL_dlaswp01N(MATRIX, AND_U, ROWS_OF_A, ROWS_OF_U) { visit(m, n); }
void HPL_dlaswp01T(MATRIX, AND_U, ROWS_OF_A, ROWS_OF_U) { visit(m, n); }
void HPL_dlaswp03N(const int m, const int n, AND_U, AND_W) { move(m, n); }
void HPL_dlaswp03T(const int m, const int n, AND_U, AND_W) { move(m, n); }
void HPL_dlaswp05N(MATRIX, const AND_U, ROWS_OF_A, ROWS_OF_U) { visit(m, n); }
void HPL_dlaswp05T(MATRIX, const AND_U, ROWS_OF_A, ROWS_OF_U) { visit(m, n); }
void HPL_dlaswp06N(MATRIX, AND_U, ROWS_OF_A) { visit(m, n); }
void HPL_dlaswp06T(MATRIX, AND_U, ROWS_OF_A) { visit(m, n); }

void HPL_dlaswp02N(const int m, const int n, const double *a, const int lda, double *w0, double *w, const int ldw,
                   ROWS_OF_A, ROWS_OF_U)
{
    visit(m, n);
}

/* m0 rows of U go to A; m1 - m0 rows of the workspace go to U. */
void HPL_dlaswp04N(const int m0, const int m1, const int n, AND_U, double *a, const int lda, AND_W, ROWS_OF_A,
                   ROWS_OF_U)
{
    visit(m0, n);
    move(m1 - m0, n);
}

void HPL_dlaswp04T(const int m0, const int m1, const int n, AND_U, double *a, const int lda, AND_W, ROWS_OF_A,
                   ROWS_OF_U)
{
    visit(m0, n);
    move(m1 - m0, n);
}
