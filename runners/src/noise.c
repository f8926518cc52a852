/*
 * A daemon that disturbs its node: short bursts of computing at times of its own.
 *
 * usage: noise SHARE BURST_S [SEED]
 *
 * SHARE of one core is taken in bursts of BURST_S seconds of CPU time. From one burst's start to
 * the next it is between 0.5 and 1.5 times BURST_S / SHARE, uniformly, and the first comes within
 * one such mean: daemons on several nodes keep no step with each other. Starts are times of the
 * clock and what waking up costs is part of a burst, so that neither changes the share. Without
 * SEED the kernel gives one. SIGTERM ends it with one line: what it took, in how long, and the seed.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whether SIGTERM, which is blocked, came before the time `until`. */
static int ended_before(double until, const sigset_t *term)
{
    double left = fmax(until - seconds(CLOCK_MONOTONIC), 0.0), whole;
    double part = modf(left, &whole);
    struct timespec wait = {(time_t)whole, (long)(part * 1e9)};
    return sigtimedwait(term, NULL, &wait) == SIGTERM;
}

int main(int argc, char **argv)
{
    double share = argc > 2 ? atof(argv[1]) : 0.0, burst = argc > 2 ? atof(argv[2]) : 0.0;
    if (!(share > 0.0 && share < 1.0 && burst > 0.0)) {
        fprintf(stderr, "usage: noise SHARE BURST_S [SEED], SHARE between 0 and 1, BURST_S above 0\n");
        return 2;
    }
    unsigned seed;
    if (argc > 3)
        seed = (unsigned)strtoul(argv[3], NULL, 10);
    else if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return 1;
    srand48((long)seed);

    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);

    double mean = burst / share;
    double began = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
    double next = began + mean * drand48();
    long bursts = 0;
    while (!ended_before(next, &term)) {
        bursts++;
        while (seconds(CLOCK_PROCESS_CPUTIME_ID) < used + (double)bursts * burst)
            ;
        next += mean * (0.5 + drand48());
    }
    printf("noise: %ld bursts, %.6f s of CPU in %.6f s, seed %u\n", bursts,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - used, seconds(CLOCK_MONOTONIC) - began, seed);
    return 0;
}
