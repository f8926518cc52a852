/* A switch with buffers:
 *
 *   buffered_switch REPORT BUFFER ALPHA PAUSE MARK DELAY FREE NETNS TAP ADDRESS BIT_S [NETNS TAP ADDRESS BIT_S ...]
 *
 * It makes a TAP interface with that hardware address in each network namespace (paths of their files) and is the switch
 * that joins them by full-duplex links of BIT_S bit/s, until SIGTERM or SIGINT. A frame takes its time on the sender's
 * link, waits in the queue of its output port, takes its time on the receiver's link, and arrives DELAY seconds later.
 *
 *   BUFFER  bytes of memory that each output port has, or all together where ALPHA is above 0. A frame takes its length
 *           and 4 bytes of checksum until its last bit has left; one that does not fit is dropped (drop-tail).
 *   ALPHA   dynamic thresholds: a port may hold ALPHA times the memory that is free (Choudhury and Hahne,
 *           IEEE/ACM Transactions on Networking 6, 1998). 0: each port has a memory of its own.
 *   PAUSE   bytes in a queue above which whoever sends to it is paused, until half of them are left (IEEE 802.3, annex
 *           31B). A frame that is on the wire still comes in. The pause itself takes no time here. 0: no pauses.
 *   MARK    bytes in a queue from which on frames of ECN-capable IPv4 get the mark "congestion experienced" (RFC 3168).
 *           0: no marks.
 *   FREE    bytes of each frame that take no time on the wire. 0: all of Ethernet's do. Above 0 the switch also cuts
 *           through: it begins to forward a frame when the frame begins to come in.
 *
 * All times are computed, from the moment when a frame is first seen: a link that has more to send goes on without a gap
 * and a queue has the length that it would have, however late this program is woken. What it is late by is counted.
 *
 * SIGUSR1 makes it write what it has counted since the last time to the file REPORT, and count anew. */

#define _GNU_SOURCE
#include "tap.h"
#include <arpa/inet.h>
#include <net/if_arp.h>

enum {
    PORTS = 128,
    NOBODY = -1,
    CHECKSUM = 4,
    UNCOUNTED = 24, /* bytes on the wire that are not in a TAP's frame: preamble 8, checksum 4, gap 12 */
    SMALLEST = 84,  /* bytes on the wire of the shortest frame, those included */
    ETHERNET = 14
};

struct frame {
    struct frame *next;
    int64_t leaves_ns; /* its last bit is on the receiver's link */
    int64_t size;      /* in the buffer [B] */
    ssize_t length;
    unsigned char bytes[];
};

struct port {
    int tap;
    double bit_s;
    unsigned char address[6];
    /* From its node. */
    int64_t arrives_ns; /* the last bit of the frame that is on its way in; INT64_MAX: none is */
    int64_t paused_ns;  /* since when, if `paused_by` is a port and not NOBODY */
    int paused_by;
    ssize_t length;
    unsigned char bytes[LARGEST_FRAME];
    /* To its node: frames from `oldest` on wait to be handed over, from `buffered` on they are in the buffer. */
    struct frame *oldest, *buffered, *newest;
    int64_t free_ns, queued;
    /* Counted since the last report. */
    long frames, dropped, marked, pauses, lost;
    int64_t bytes_out, most_queued, paused_for_ns;
};

static struct {
    int count;
    struct port ports[PORTS];
    int64_t memory, in_use, pause, mark, delay_ns, free;
    double alpha;
    /* Counted since the last report. */
    long handed_over;
    int64_t late_ns, most_late_ns;
} sw;

static volatile sig_atomic_t asked;

static void ask(int number)
{
    (void)number;
    asked = 1;
}

static int64_t on_wire_ns(const struct port *port, ssize_t length)
{
    ssize_t bytes = length + UNCOUNTED < SMALLEST ? SMALLEST : length + UNCOUNTED;
    if (sw.free)
        bytes = length > sw.free ? length - sw.free : 0;
    return (int64_t)(bytes * 8e9 / port->bit_s);
}

static void distribute(int number, int64_t time_ns);

/* The link of a port is free from `from_ns` on: put its node's next frame on it, if there is one. */
static void send_next(struct port *port, int64_t from_ns)
{
    port->arrives_ns = INT64_MAX;
    if (port->paused_by != NOBODY)
        return;
    port->length = read(port->tap, port->bytes, sizeof port->bytes);
    if (port->length < ETHERNET)
        return;
    port->arrives_ns = from_ns + on_wire_ns(port, port->length);
    if (sw.free)
        distribute(port - sw.ports, from_ns);
}

/* Let those go on that a port's queue has paused. */
static void resume(int by, int64_t time_ns)
{
    for (int i = 0; i < sw.count; i++) {
        struct port *port = &sw.ports[i];
        if (port->paused_by != by)
            continue;
        port->paused_by = NOBODY;
        port->paused_for_ns += time_ns - port->paused_ns;
        if (port->arrives_ns == INT64_MAX)
            send_next(port, time_ns);
    }
}

/* Free the memory of frames whose last bit has left by then. */
static void drain(int number, int64_t time_ns)
{
    struct port *port = &sw.ports[number];
    while (port->buffered && port->buffered->leaves_ns <= time_ns) {
        int64_t left_ns = port->buffered->leaves_ns;
        port->queued -= port->buffered->size;
        sw.in_use -= port->buffered->size;
        port->buffered = port->buffered->next;
        if (sw.pause && port->queued <= sw.pause / 2)
            resume(number, left_ns);
    }
}

static int fits(const struct port *port, int64_t size)
{
    if (!sw.alpha)
        return port->queued + size <= sw.memory;
    int64_t free = sw.memory - sw.in_use;
    return size <= free && port->queued < sw.alpha * free;
}

/* Set "congestion experienced" where both ends understand it; the header's checksum follows (RFC 1624). */
static int mark(unsigned char *bytes, ssize_t length)
{
    unsigned char *ip = bytes + ETHERNET;
    if (length < ETHERNET + 20 || bytes[12] != 8 || bytes[13] != 0 || ip[0] >> 4 != 4 || !(ip[1] & 3) || (ip[1] & 3) == 3)
        return 0;
    uint16_t before, checksum, after;
    memcpy(&before, ip, 2);
    ip[1] |= 3;
    memcpy(&after, ip, 2);
    memcpy(&checksum, ip + 10, 2);
    uint32_t sum = (uint16_t)~checksum + (uint16_t)~before + after;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    checksum = ~sum;
    memcpy(ip + 10, &checksum, 2);
    return 1;
}

/* A frame that can be forwarded from `time_ns` on joins the queue of an output port, or is dropped. */
static void enqueue(struct port *from, int to, int64_t time_ns)
{
    struct port *port = &sw.ports[to];
    int64_t size = from->length + CHECKSUM;
    if (sw.alpha)
        for (int i = 0; i < sw.count; i++)
            drain(i, time_ns);
    else
        drain(to, time_ns);
    if (!fits(port, size)) {
        port->dropped++;
        return;
    }
    struct frame *frame = malloc(sizeof *frame + from->length);
    if (!frame)
        fail("memory");
    memcpy(frame->bytes, from->bytes, from->length);
    if (sw.mark && port->queued >= sw.mark)
        port->marked += mark(frame->bytes, from->length);
    frame->next = NULL;
    frame->length = from->length;
    frame->size = size;
    port->free_ns = (port->free_ns > time_ns ? port->free_ns : time_ns) + on_wire_ns(port, from->length);
    frame->leaves_ns = port->free_ns;
    if (port->oldest)
        port->newest->next = frame;
    else
        port->oldest = frame;
    if (!port->buffered)
        port->buffered = frame;
    port->newest = frame;
    port->queued += size;
    sw.in_use += size;
    if (port->queued > port->most_queued)
        port->most_queued = port->queued;
    if (sw.pause && port->queued > sw.pause && from->paused_by == NOBODY) {
        from->paused_by = to;
        from->paused_ns = time_ns;
        from->pauses++;
    }
}

/* The frame of a port: to the port of its address, or to all others. */
static void distribute(int number, int64_t time_ns)
{
    struct port *from = &sw.ports[number];
    int to_all = from->bytes[0] & 1;
    for (int to = 0; to < sw.count; to++)
        if (to != number && (to_all || !memcmp(from->bytes, sw.ports[to].address, 6)))
            enqueue(from, to, time_ns);
}

/* The frame of a port has come in whole. */
static void forward(int number)
{
    struct port *from = &sw.ports[number];
    int64_t time_ns = from->arrives_ns;
    if (!sw.free)
        distribute(number, time_ns);
    send_next(from, time_ns);
}

/* Do what is due by now in its order; returns the time of what comes next. */
static int64_t advance(int64_t now)
{
    for (;;) {
        int first = NOBODY, leaving = NOBODY;
        int64_t next = INT64_MAX;
        for (int i = 0; i < sw.count; i++) {
            struct port *port = &sw.ports[i];
            if (port->arrives_ns < next) {
                next = port->arrives_ns;
                first = i;
                leaving = NOBODY;
            }
            /* What leaves matters at once only where somebody waits for it. */
            if (sw.pause && port->buffered && port->buffered->leaves_ns < next) {
                next = port->buffered->leaves_ns;
                leaving = i;
            }
        }
        if (next > now)
            return next;
        if (leaving != NOBODY)
            drain(leaving, next);
        else
            forward(first);
    }
}

/* Hand over what has arrived by now; returns when the next frame will. */
static int64_t hand_over(int number, int64_t now)
{
    struct port *port = &sw.ports[number];
    while (port->oldest) {
        struct frame *frame = port->oldest;
        int64_t arrives_ns = frame->leaves_ns + sw.delay_ns;
        if (arrives_ns > now)
            return arrives_ns;
        drain(number, frame->leaves_ns);
        int64_t late_ns = now_ns() - arrives_ns;
        sw.late_ns += late_ns;
        sw.handed_over++;
        if (late_ns > sw.most_late_ns)
            sw.most_late_ns = late_ns;
        if (write(port->tap, frame->bytes, frame->length) == frame->length) {
            port->frames++;
            port->bytes_out += frame->length;
        } else
            port->lost++; /* its node is down */
        port->oldest = frame->next;
        free(frame);
    }
    return INT64_MAX;
}

static void report(const char *file)
{
    char fresh[4096];
    int64_t now = now_ns();
    snprintf(fresh, sizeof fresh, "%s.new", file);
    FILE *out = fopen(fresh, "w");
    if (!out)
        fail(fresh);
    fprintf(out, "buffered_switch: %d ports, buffer %lld alpha %g pause %lld mark %lld delay %.9f free %lld\n", sw.count,
            (long long)sw.memory, sw.alpha, (long long)sw.pause, (long long)sw.mark, sw.delay_ns / 1e9,
            (long long)sw.free);
    for (int i = 0; i < sw.count; i++) {
        struct port *port = &sw.ports[i];
        if (port->paused_by != NOBODY) {
            port->paused_for_ns += now - port->paused_ns;
            port->paused_ns = now;
        }
        fprintf(out, "%d %.0f %ld %lld %ld %ld %ld %lld %ld %.9f\n", i + 1, port->bit_s, port->frames,
                (long long)port->bytes_out, port->dropped, port->lost, port->marked, (long long)port->most_queued,
                port->pauses, port->paused_for_ns / 1e9);
        port->frames = port->dropped = port->lost = port->marked = port->pauses = 0;
        port->bytes_out = port->paused_for_ns = 0;
        port->most_queued = port->queued;
    }
    fprintf(out, "late %ld %.9f %.9f\nend of buffered_switch\n", sw.handed_over, sw.late_ns / 1e9, sw.most_late_ns / 1e9);
    sw.handed_over = sw.late_ns = sw.most_late_ns = 0;
    if (fclose(out) || rename(fresh, file))
        fail(file);
}

static void set_address(const struct port *port, const char *tap)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", tap);
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(request.ifr_hwaddr.sa_data, port->address, 6);
    if (ioctl(port->tap, SIOCSIFHWADDR, &request))
        fail(tap);
}

static double number(const char *word, double least, double most)
{
    char *rest;
    double value = strtod(word, &rest);
    if (*rest || rest == word || !(value >= least && value <= most)) {
        fprintf(stderr, "buffered_switch: %s has to be a number from %g to %g\n", word, least, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 16 || (argc - 8) % 4 || (argc - 8) / 4 > PORTS) {
        fprintf(stderr,
                "usage: buffered_switch REPORT BUFFER ALPHA PAUSE MARK DELAY FREE NETNS TAP ADDRESS BIT_S "
                "NETNS TAP ADDRESS BIT_S ... (at most %d)\n",
                PORTS);
        return 2;
    }
    sw.memory = number(argv[2], 1, 1e15);
    sw.alpha = number(argv[3], 0, 1e6);
    sw.pause = number(argv[4], 0, 1e15);
    sw.mark = number(argv[5], 0, 1e15);
    sw.delay_ns = 1e9 * number(argv[6], 0, 10);
    sw.free = number(argv[7], 0, LARGEST_FRAME);
    sigset_t asking, unblocked;
    sigemptyset(&asking);
    sigaddset(&asking, SIGUSR1);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ask}, NULL);
    unblocked = hold_signals();
    sigprocmask(SIG_BLOCK, &asking, NULL);
    run_in_real_time();
    for (; sw.count < (argc - 8) / 4; sw.count++) {
        struct port *port = &sw.ports[sw.count];
        char **words = argv + 8 + 4 * sw.count;
        unsigned char *a = port->address;
        if (sscanf(words[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", a, a + 1, a + 2, a + 3, a + 4, a + 5) != 6) {
            fprintf(stderr, "buffered_switch: %s is no hardware address\n", words[2]);
            return 2;
        }
        port->bit_s = number(words[3], 1e3, 1e12);
        port->arrives_ns = INT64_MAX;
        port->paused_by = NOBODY;
        enter(words[0]);
        port->tap = open_tap(words[1]);
        set_address(port, words[1]);
    }
    while (!ended) {
        if (asked) {
            asked = 0;
            report(argv[1]);
        }
        int64_t now = now_ns(), next = advance(now);
        for (int i = 0; i < sw.count; i++) {
            int64_t due = hand_over(i, now);
            if (due < next)
                next = due;
        }
        struct pollfd idle[PORTS];
        int numbers[PORTS], count = 0;
        for (int i = 0; i < sw.count; i++)
            if (sw.ports[i].arrives_ns == INT64_MAX && sw.ports[i].paused_by == NOBODY) {
                idle[count] = (struct pollfd){.fd = sw.ports[i].tap, .events = POLLIN};
                numbers[count++] = i;
            }
        await(idle, count, next, &unblocked);
        now = now_ns();
        for (int i = 0; i < count; i++)
            if (idle[i].revents & POLLIN)
                send_next(&sw.ports[numbers[i]], now);
    }
    return 0;
}
