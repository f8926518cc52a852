/*
 * The rate model of a simulated node: how many seconds HPL's arithmetic and copying would take.
 *
 * Nothing here was measured by the simulation: every number comes from the file rates.txt in the
 * working directory, one `name value` a line, # begins a comment. All names below must be there.
 * An infinite rate (`inf`) and a time of 0 make computing free, so that only messages take time.
 */
#ifndef SIMULATED_H
#define SIMULATED_H

#define RATES(rate)                                                                              \
    /* flop/s of DGEMM on all cores of a node when its three dimensions are long */              \
    rate(dgemm_flop_s)                                                                           \
    /* elements: an inner dimension k of this length halves that rate: F k / (k + k_half) */     \
    rate(dgemm_k_half)                                                                           \
    /* elements: the same for the shorter of the two outer dimensions */                         \
    rate(dgemm_mn_half)                                                                          \
    /* 1: the rate of the triangular solve DTRSM as a share of DGEMM's with the same k */        \
    rate(dtrsm_share)                                                                            \
    /* bytes/s read and written by all cores: the BLAS 1 and 2 of the panel's factorisation */   \
    rate(node_byte_s)                                                                            \
    /* bytes/s read and written by one core: HPL's own loops that copy blocks */                 \
    rate(core_byte_s)                                                                            \
    /* s for one element of a matrix row: each lies in a cache line, often a page, of its own */ \
    rate(strided_s)

#define AS_FIELD(name) double name;
struct rates {
    RATES(AS_FIELD)
};

/* The rates of this run; before MPI_Init has returned there are none. */
extern struct rates rates;

/* Adds seconds to what the next MPI call makes the node compute. Said of 0 s too: work was done. */
void charge(double seconds);

/*
 * How many MPI_Iprobe in a row, with nothing done in between, are answered as they are: a node that asks
 * more often only waits. And a sign that it does so already.
 */
extern int patience;
void wait_from_now_on(void);

static inline double shorter(double a, double b)
{
    return a < b ? a : b;
}

/* C := C - A B with C m x n and inner dimension k: 2 m n k operations. */
static inline void charge_dgemm(double m, double n, double k)
{
    if (m > 0 && n > 0 && k > 0)
        charge(2.0 * m * n * k / rates.dgemm_flop_s * (1.0 + rates.dgemm_k_half / k) *
               (1.0 + rates.dgemm_mn_half / shorter(m, n)));
}

/* A triangle of order k applied to n columns (or rows): k k n operations. */
static inline void charge_dtrsm(double k, double n)
{
    if (k > 0 && n > 0)
        charge(k * k * n / (rates.dtrsm_share * rates.dgemm_flop_s) * (1.0 + rates.dgemm_k_half / k));
}

/* So many numbers read or written, by all cores or by one. */
static inline void charge_node(double numbers)
{
    if (numbers > 0)
        charge(sizeof(double) * numbers / rates.node_byte_s);
}

static inline void charge_core(double numbers)
{
    if (numbers > 0)
        charge(sizeof(double) * numbers / rates.core_byte_s);
}

static inline void charge_strided(double numbers)
{
    if (numbers > 0)
        charge(rates.strided_s * numbers);
}

#endif
