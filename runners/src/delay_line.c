/* A delay line: delay_line NETNS_A TAP_A NETNS_B TAP_B SECONDS [BIT/S]
 *
 * It makes a TAP interface in each of two network namespaces (paths of their files) and hands every frame that one
 * sends to the other, SECONDS later, both ways, until SIGTERM or SIGINT. What finds the queue of a way full is
 * dropped. At the end it prints for each way how many frames it carried and dropped.
 *
 * With a rate it is also the wire: a frame leaves A when the wire has carried it behind those before it. To B it may leave
 * as soon as it comes, as through a switch that begins to forward before it has the whole frame, but no two frames leave
 * faster than the rate. Unlike a token bucket it lets nothing pass for free. */

#define _GNU_SOURCE
#include "tap.h"

/* 20 ms at 1 Gbit/s are 1640 full frames of MTU 1500. */
enum { SLOTS = 4096, AT_ONCE = 64 };
/* B: with its header; and check sum, preamble and gap (IEEE 802.3). */
enum { LEAST_FRAME = 60, AROUND_FRAME = 24 };

struct frame {
    int64_t due_ns;
    ssize_t length;
    unsigned char bytes[LARGEST_FRAME];
};

struct way {
    int in, out, is_behind_switch;
    double byte_ns;             /* of the wire, 0: it has no rate */
    int64_t free_ns;            /* when the wire has carried what came */
    struct frame *queue;
    unsigned long entered, left, carried, dropped;
};

/* When the last bit of a frame that has come now is on its way. */
static int64_t leaves_ns(struct way *way, ssize_t length, int64_t now)
{
    ssize_t least = length > LEAST_FRAME ? length : LEAST_FRAME;
    int64_t takes_ns = (int64_t)((double)(least + AROUND_FRAME) * way->byte_ns);
    int64_t begins = way->is_behind_switch ? now - takes_ns : now;
    return way->free_ns = (begins > way->free_ns ? begins : way->free_ns) + takes_ns;
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
        frame->due_ns = leaves_ns(way, frame->length, now_ns()) + delay_ns;
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

int main(int argc, char **argv)
{
    char *rest;
    double delay_s = argc >= 6 ? strtod(argv[5], &rest) : -1;
    double rate = argc == 7 && !*rest ? strtod(argv[6], &rest) : 0;
    if (argc < 6 || argc > 7 || *rest || !(delay_s >= 0 && delay_s <= 10) || !(rate > 0 || argc == 6)) {
        fprintf(stderr, "usage: delay_line NETNS_A TAP_A NETNS_B TAP_B SECONDS (0 to 10) [BIT/S]\n");
        return 2;
    }
    sigset_t unblocked = hold_signals();
    int taps[2];
    for (int i = 0; i < 2; i++) {
        enter(argv[1 + 2 * i]);
        taps[i] = open_tap(argv[2 + 2 * i]);
    }
    struct way ways[] = {{.in = taps[0], .out = taps[1]}, {.in = taps[1], .out = taps[0], .is_behind_switch = 1}};
    struct pollfd waiting[] = {{.fd = taps[0], .events = POLLIN}, {.fd = taps[1], .events = POLLIN}};
    for (int i = 0; i < 2; i++)
        if (ways[i].byte_ns = rate > 0 ? 8e9 / rate : 0, !(ways[i].queue = malloc(SLOTS * sizeof(struct frame))))
            fail("memory");
    while (!ended) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < 2; i++) {
            take_in(&ways[i], (int64_t)(delay_s * 1e9));
            int64_t due = hand_over(&ways[i]);
            if (due < next)
                next = due;
        }
        await(waiting, 2, next, &unblocked);
    }
    printf("carried %lu %lu dropped %lu %lu\n", ways[0].carried, ways[1].carried, ways[0].dropped, ways[1].dropped);
    return 0;
}
