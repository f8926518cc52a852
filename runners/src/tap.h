/* What programs share that carry frames between interfaces: TAP interfaces in network namespaces, the clock, and an
 * end by SIGTERM or SIGINT. Define _GNU_SOURCE before it is included. */

#ifndef TAP_H
#define TAP_H

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_FRAME = 9216 };

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    exit(1);
}

static inline int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Run before all ordinary work, where the system lets us: else a frame of a fraction of a millisecond may wait 4 ms for
 * the scheduler's next tick. Not for who carries so many that nobody else would run. */
static inline void run_in_real_time(void)
{
    sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 10});
}

/* From here on signals only set `ended`, and only during ppoll with the set that is returned: none is missed. */
static inline sigset_t hold_signals(void)
{
    struct sigaction action = {.sa_handler = end};
    sigset_t blocked, unblocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, &unblocked);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1); /* else each wait lasts up to 50 us longer */
    return unblocked;
}

/* Sleep until a frame comes, or until a time (INT64_MAX: none), or a signal is let in. */
static inline void await(struct pollfd *waiting, int count, int64_t until_ns, const sigset_t *unblocked)
{
    int64_t left_ns = until_ns - now_ns();
    if (left_ns < 0)
        left_ns = 0;
    struct timespec left = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
    if (ppoll(waiting, count, until_ns == INT64_MAX ? NULL : &left, unblocked) < 0 && errno != EINTR)
        fail("ppoll");
}

/* Be in a network namespace, by the path of its file. */
static inline void enter(const char *namespace)
{
    int space = open(namespace, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET))
        fail(namespace);
    close(space);
}

/* A new TAP interface in the network namespace where we are. */
static inline int open_tap(const char *name)
{
    struct ifreq request = {0};
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0)
        fail("/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    /* With NAPI receiving is a thread's work where the interface is told so, and not this program's. */
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_NAPI;
    if (ioctl(tap, TUNSETIFF, &request))
        fail(name);
    return tap;
}

#endif
