/* A delay line: delay_line NETNS_A TAP_A NETNS_B TAP_B SECONDS
 *
 * It makes a TAP interface in each of two network namespaces (paths of their files) and hands every frame that one
 * sends to the other, SECONDS later, both ways, until SIGTERM or SIGINT. What finds the queue of a way full is
 * dropped. At the end it prints for each way how many frames it carried and dropped. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
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

/* 20 ms at 1 Gbit/s are 1640 full frames of MTU 1500. */
enum { SLOTS = 4096, LARGEST_FRAME = 9216, AT_ONCE = 64 };

struct frame {
    int64_t due_ns;
    ssize_t length;
    unsigned char bytes[LARGEST_FRAME];
};

struct way {
    int in, out;
    struct frame *queue;
    unsigned long entered, left, carried, dropped;
};

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static void fail(const char *what)
{
    fprintf(stderr, "delay_line: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int open_tap(const char *namespace, const char *name)
{
    struct ifreq request = {0};
    int space = open(namespace, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET))
        fail(namespace);
    close(space);
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

/* Take in frames that wait, not so many that what is due waits for them. A full queue drops the newest. */
static void take_in(struct way *way, int64_t delay_ns)
{
    static struct frame refused;
    for (int taken = 0; taken < AT_ONCE; taken++) {
        int full = way->entered - way->left == SLOTS;
        struct frame *frame = full ? &refused : &way->queue[way->entered % SLOTS];
        frame->length = read(way->in, frame->bytes, LARGEST_FRAME);
        if (frame->length <= 0)
            return;
        frame->due_ns = now_ns() + delay_ns;
        if (full)
            way->dropped++;
        else
            way->entered++;
    }
}

/* Hand over what is due; returns the time at which the next frame will be, or INT64_MAX. */
static int64_t hand_over(struct way *way)
{
    for (; way->left != way->entered; way->left++) {
        struct frame *frame = &way->queue[way->left % SLOTS];
        if (frame->due_ns > now_ns())
            return frame->due_ns;
        if (write(way->out, frame->bytes, frame->length) == frame->length)
            way->carried++;
        else
            way->dropped++;
    }
    return INT64_MAX;
}

/* Sleep until a frame comes or is due; a signal is let in only here, so that none is missed. */
static void await(const struct way *ways, int64_t due_ns, const sigset_t *unblocked)
{
    struct pollfd waiting[] = {{.fd = ways[0].in, .events = POLLIN}, {.fd = ways[1].in, .events = POLLIN}};
    int64_t left_ns = due_ns - now_ns();
    if (left_ns < 0)
        left_ns = 0;
    struct timespec left = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
    if (ppoll(waiting, 2, due_ns == INT64_MAX ? NULL : &left, unblocked) < 0 && errno != EINTR)
        fail("ppoll");
}

int main(int argc, char **argv)
{
    char *rest;
    double delay_s = argc == 6 ? strtod(argv[5], &rest) : -1;
    if (argc != 6 || *rest || !(delay_s >= 0 && delay_s <= 10)) {
        fprintf(stderr, "usage: delay_line NETNS_A TAP_A NETNS_B TAP_B SECONDS (0 to 10)\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = end};
    sigset_t blocked, unblocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, &unblocked);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1); /* else each wait lasts up to 50 us longer */

    int taps[] = {open_tap(argv[1], argv[2]), open_tap(argv[3], argv[4])};
    struct way ways[] = {{.in = taps[0], .out = taps[1]}, {.in = taps[1], .out = taps[0]}};
    for (int i = 0; i < 2; i++)
        if (!(ways[i].queue = malloc(SLOTS * sizeof(struct frame))))
            fail("memory");
    while (!ended) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < 2; i++) {
            take_in(&ways[i], (int64_t)(delay_s * 1e9));
            int64_t due = hand_over(&ways[i]);
            if (due < next)
                next = due;
        }
        await(ways, next, &unblocked);
    }
    printf("carried %lu %lu dropped %lu %lu\n", ways[0].carried, ways[1].carried, ways[0].dropped, ways[1].dropped);
    return 0;
}
