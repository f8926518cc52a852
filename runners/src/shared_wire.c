/* A shared wire: shared_wire BIT_S NETNS TAP NETNS TAP [NETNS TAP ...]
 *
 * It makes a TAP interface in each of the network namespaces (paths of their files), a station each, and joins them
 * by a half-duplex Ethernet of BIT_S bit/s until SIGTERM or SIGINT: one frame at a time is on the wire, whatever station
 * it is from, and it arrives when its last bit has passed. Stations that wait take turns: that is carrier sense without
 * collisions. At the end it prints how many frames it carried, and lost because a station was down.
 *
 * A token bucket (tbf) would not do: it lets the first frame after a pause through in no time and small frames in
 * bursts, so that a chain of wires would be as fast as a single one. */

#define _GNU_SOURCE
#include "tap.h"

enum {
    STATIONS = 64,
    ADDRESSES = 256,
    UNCOUNTED = 24, /* bytes on the wire that are not in a TAP's frame: preamble 8, checksum 4, gap 12 */
    SMALLEST = 84   /* bytes on the wire of the shortest frame, those included */
};

struct wire {
    int count, sender; /* `sender`: the station that sends, or was the last to */
    struct pollfd stations[STATIONS];
    struct {
        uint64_t address;
        int station;
    } known[ADDRESSES];
    int addresses;
    unsigned long carried, lost;
};

static unsigned char frame[LARGEST_FRAME];

static uint64_t address(const unsigned char *bytes)
{
    uint64_t address = 0;
    memcpy(&address, bytes, 6);
    return address;
}

/* The index of an address among those known, or -1. */
static int find(const struct wire *wire, uint64_t wanted)
{
    for (int i = 0; i < wire->addresses; i++)
        if (wire->known[i].address == wanted)
            return i;
    return -1;
}

static void learn(struct wire *wire, uint64_t source)
{
    int found = find(wire, source);
    if (found < 0 && wire->addresses < ADDRESSES)
        found = wire->addresses++;
    if (found < 0)
        return;
    wire->known[found].address = source;
    wire->known[found].station = wire->sender;
}

/* Take a frame from the next station that has one; its length, or 0. */
static ssize_t take(struct wire *wire)
{
    for (int step = 1; step <= wire->count; step++) {
        int station = (wire->sender + step) % wire->count;
        if (wire->stations[station].revents & POLLIN) {
            wire->sender = station;
            ssize_t length = read(wire->stations[station].fd, frame, sizeof frame);
            return length < 14 ? 0 : length;
        }
    }
    return 0;
}

/* All stations hear a frame, and a card drops what is not for it. So it is handed to the one that has its address,
 * and to all others only where none is known to have it. */
static void deliver(struct wire *wire, ssize_t length)
{
    int to_all = frame[0] & 1, found = to_all ? -1 : find(wire, address(frame)), whole = 1;
    for (int station = 0; station < wire->count; station++)
        if (station != wire->sender && (found < 0 || wire->known[found].station == station))
            whole &= write(wire->stations[station].fd, frame, length) == length;
    if (whole)
        wire->carried++;
    else
        wire->lost++;
}

static int64_t passing_ns(ssize_t length, double bit_s)
{
    ssize_t bytes = length + UNCOUNTED < SMALLEST ? SMALLEST : length + UNCOUNTED;
    return (int64_t)(bytes * 8e9 / bit_s);
}

int main(int argc, char **argv)
{
    static struct wire wire;
    char *rest = "";
    double bit_s = argc > 1 ? strtod(argv[1], &rest) : 0;
    if (argc < 6 || argc % 2 || argc > 2 + 2 * STATIONS || *rest || !(bit_s >= 1e3 && bit_s <= 1e12)) {
        fprintf(stderr, "usage: shared_wire BIT_S NETNS TAP NETNS TAP [NETNS TAP ...] (at most %d)\n", STATIONS);
        return 2;
    }
    sigset_t unblocked = hold_signals();
    run_in_real_time();
    for (; wire.count < (argc - 2) / 2; wire.count++) {
        enter(argv[2 + 2 * wire.count]);
        wire.stations[wire.count] = (struct pollfd){.fd = open_tap(argv[3 + 2 * wire.count]), .events = POLLIN};
    }
    int64_t free_ns = 0;
    int waiting = 0;
    while (!ended) {
        if (!waiting) {
            await(wire.stations, wire.count, INT64_MAX, &unblocked);
            free_ns = now_ns();
        }
        ssize_t length = take(&wire);
        waiting = 0;
        if (!length)
            continue;
        learn(&wire, address(frame + 6));
        free_ns += passing_ns(length, bit_s);
        while (!ended && now_ns() < free_ns)
            await(NULL, 0, free_ns, &unblocked);
        /* What waits by now follows without a pause, however late we are. Asked before a frame is handed over: an answer
         * to it may be there at once, but not before it. */
        waiting = poll(wire.stations, wire.count, 0) > 0;
        deliver(&wire, length);
    }
    printf("carried %lu lost %lu\n", wire.carried, wire.lost);
    return 0;
}
