/*
 * What one node delivers, as the rate model of a simulated node asks for it (simulated.h): raw timings, from
 * which runners/tools/node_rates.py makes the rates.
 *
 * usage: node_rates SECONDS ARRAY_MIB   (no MPI program; all cores that it may use)
 *
 * Everything is measured in turn, and that five times over, so that what disturbs the node for a while disturbs
 * one turn of each. After an untimed repetition (first touch of the memory, threads started) each is repeated
 * until SECONDS have passed on the wall clock: where the node is limited by a quota, that is part of it.
 *
 *   dgemm    C := C - A B with C m x n and inner dimension k; thin: the same with few columns n
 *   dtrsm    X := X U^-1 with X m x k and U a unit triangle of order k, as HPL updates a block of rows
 *   triad    a := b + 3 c, m numbers each, by all cores: McCalpin's STREAM (cs.virginia.edu/stream)
 *   copy     b := a, m numbers, by one core
 *   strided  m swaps of two rows of n numbers that lie k numbers apart, by one core: HPL's panels, one after
 *            the other through one of STREAM's arrays, so that none is in a cache before
 *
 * ARRAY_MIB is the size of each of STREAM's three arrays; it asks for four times the last-level caches.
 */
#define _POSIX_C_SOURCE 200809L
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TURNS 5
#define ORDER 2048 /* 32 MiB of C, as in runners/tools/dgemm.py */
#define WIDEST 256
#define LEADING 8184 /* of the rows swapped: several thousand, and no power of two */
#define COLUMNS 128
#define SWAPS 1024        /* in each panel of so many columns */
#define LEAST_ARRAY_MIB 8 /* one panel */

static double *a, *b, *c;                         /* of STREAM */
static double *left, *right, *product, *triangle; /* matrices, by columns */

struct measurement {
    const char *kind;
    size_t m;
    int n, k;
    void (*once)(const struct measurement *);
};

static void dgemm(const struct measurement *of)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, ORDER, of->n, of->k, -1.0, left, ORDER, right, WIDEST,
                1.0, product, ORDER);
}

/* The triangle is an identity: X stays what it is, and no number overflows. */
static void dtrsm(const struct measurement *of)
{
    cblas_dtrsm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasUnit, ORDER, of->k, 1.0, triangle,
                WIDEST, left, ORDER);
}

static void triad(const struct measurement *of)
{
#pragma omp parallel for
    for (size_t i = 0; i < of->m; i++)
        a[i] = b[i] + 3.0 * c[i];
}

/* Not a loop of our own: compilers make of it a memcpy, which writes past the caches as HPL's loops do not. */
static void copy(const struct measurement *of)
{
    cblas_dcopy((int)of->m, a, 1, b, 1);
}

/* In each panel a row after the other with one far from it, as pivots are. */
static void strided(const struct measurement *of)
{
    for (size_t swap = 0; swap < of->m; swap++) {
        double *panel = a + swap / SWAPS * LEADING * COLUMNS;
        size_t row = swap % SWAPS, far = SWAPS + row * 4099 % (LEADING - SWAPS);
        cblas_dswap(of->n, panel + row, of->k, panel + far, of->k);
    }
}

static double *numbers(size_t count)
{
    double *block = malloc(count * sizeof *block);
    if (block == NULL) {
        fprintf(stderr, "node_rates: no memory for %zu numbers\n", count);
        exit(1);
    }
#pragma omp parallel for /* each core touches first what it works on */
    for (size_t i = 0; i < count; i++)
        block[i] = (double)(i % 1000) / 1000.0 - 0.5;
    return block;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double window = argc == 3 ? atof(argv[1]) : 0.0;
    long mib = argc == 3 ? atol(argv[2]) : 0;
    if (!(window > 0.0) || mib < LEAST_ARRAY_MIB || mib >= 16384) {
        fprintf(stderr, "usage: node_rates SECONDS ARRAY_MIB, SECONDS above 0, arrays of 8 MiB to below 16 GiB\n");
        return 2;
    }

    size_t length = (size_t)mib * (1 << 20) / sizeof(double);
    a = numbers(length), b = numbers(length), c = numbers(length);
    left = numbers((size_t)ORDER * WIDEST), right = numbers((size_t)WIDEST * ORDER);
    product = numbers((size_t)ORDER * ORDER), triangle = numbers((size_t)WIDEST * WIDEST);
    for (int column = 0; column < WIDEST; column++)
        for (int row = 0; row < WIDEST; row++)
            triangle[row + column * WIDEST] = row == column;

    const struct measurement all[] = {
        {"dgemm", ORDER, ORDER, 16, dgemm},   {"dgemm", ORDER, ORDER, 32, dgemm},
        {"dgemm", ORDER, ORDER, 64, dgemm},   {"dgemm", ORDER, ORDER, 128, dgemm},
        {"dgemm", ORDER, ORDER, 256, dgemm},  {"thin", ORDER, 16, 128, dgemm},
        {"thin", ORDER, 32, 128, dgemm},      {"thin", ORDER, 64, 128, dgemm},
        {"thin", ORDER, 128, 128, dgemm},     {"thin", ORDER, 256, 128, dgemm},
        {"dtrsm", ORDER, 0, 64, dtrsm},       {"dtrsm", ORDER, 0, 128, dtrsm},
        {"triad", length, 0, 0, triad},       {"copy", length, 0, 0, copy},
        {"strided", length / (LEADING * COLUMNS) * SWAPS, COLUMNS, LEADING, strided},
    };
    int measurements = sizeof all / sizeof *all;

    printf("node_rates: %d turns of %d measurements, window %g s, %d threads\n", TURNS, measurements, window,
           omp_get_max_threads());
    printf("turn     kind          m      n      k             s  repetitions\n");
    for (int turn = 1; turn <= TURNS; turn++)
        for (const struct measurement *of = all; of < all + measurements; of++) {
            of->once(of);
            double start = seconds(), elapsed = 0.0;
            long repetitions = 0;
            while (elapsed < window) {
                of->once(of);
                repetitions++;
                elapsed = seconds() - start;
            }
            printf("%4d %8s %10zu %6d %6d %13.6f %12ld\n", turn, of->kind, of->m, of->n, of->k, elapsed,
                   repetitions);
        }
    printf("end of node_rates\n");
    return 0;
}
