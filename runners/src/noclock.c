/*
 * For LD_PRELOAD. SMPI reads the CPU time of its thread twice in every MPI call, a system call each
 * time, to find out what a program computed in between; with smpi/simulate-computation off it then
 * throws the answer away. A third of a simulation's time goes there: this answers without asking.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID) {
        now->tv_sec = 0;
        now->tv_nsec = 0;
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}
