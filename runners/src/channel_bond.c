/* A channel bond: channel_bond NETNS BOND WIRE WIRE [WIRE ...]
 *
 * In a network namespace (path of its file) it makes a TAP interface BOND and joins the interfaces WIRE to it until
 * SIGTERM or SIGINT: what BOND sends leaves over the wires in turn, a frame each, and what comes in by any of them
 * comes in by BOND. So does the round robin (balance-rr) of Linux's bonding driver, for kernels without it, and so did
 * the Beowulf's channel bonding; frames may overtake each other. At the end it prints how many it sent by each, and
 * lost while BOND was down. */

#define _GNU_SOURCE
#include "tap.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

enum { WIRES = 8, AT_ONCE = 64, WAITING_BYTES = 1 << 20 };

static unsigned char frame[LARGEST_FRAME];

static int open_wire(const char *name)
{
    int yes = 1, waiting = WAITING_BYTES;
    struct sockaddr_ll place = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    place.sll_ifindex = if_nametoindex(name);
    if (!place.sll_ifindex)
        fail(name);
    int wire = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); /* 0: nothing comes before bind */
    if (wire < 0 || setsockopt(wire, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) ||
        setsockopt(wire, SOL_SOCKET, SO_RCVBUFFORCE, &waiting, sizeof waiting) ||
        bind(wire, (struct sockaddr *)&place, sizeof place))
        fail(name);
    return wire;
}

int main(int argc, char **argv)
{
    struct pollfd ends[1 + WIRES]; /* the bond, then its wires */
    unsigned long sent[WIRES] = {0}, lost = 0;
    int wires = argc - 3, turn = 0;
    if (wires < 2 || wires > WIRES) {
        fprintf(stderr, "usage: channel_bond NETNS BOND WIRE WIRE [WIRE ...] (at most %d)\n", WIRES);
        return 2;
    }
    sigset_t unblocked = hold_signals();
    run_in_real_time();
    enter(argv[1]);
    for (int i = 0; i < wires; i++)
        ends[1 + i] = (struct pollfd){.fd = open_wire(argv[3 + i]), .events = POLLIN};
    ends[0] = (struct pollfd){.fd = open_tap(argv[2]), .events = POLLIN};
    while (!ended) {
        ssize_t length;
        await(ends, 1 + wires, INT64_MAX, &unblocked);
        for (int n = 0; n < AT_ONCE && (length = read(ends[0].fd, frame, sizeof frame)) > 0; n++) {
            /* A wire whose queue is full loses the frame, as a card does. */
            sent[turn] += send(ends[1 + turn].fd, frame, length, 0) == length;
            turn = (turn + 1) % wires;
        }
        for (int i = 1; i <= wires; i++)
            for (int n = 0; n < AT_ONCE && (length = recv(ends[i].fd, frame, sizeof frame, 0)) > 0; n++)
                lost += write(ends[0].fd, frame, length) != length;
    }
    printf("sent");
    for (int i = 0; i < wires; i++)
        printf(" %lu", sent[i]);
    printf(" lost %lu\n", lost);
    return 0;
}
