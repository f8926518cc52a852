/* The coordinator of a token exchange by TCP: it starts and ends every run for all pairs, and prints their rows. */
#include "token.h"
#include "token_tcp.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_PAIRS = 512 };

static int producers[MOST_PAIRS];

/* One item of `bytes` from each producer, in whatever order they come. */
static void gather(int pairs, char *items, size_t bytes)
{
    struct pollfd waiting[MOST_PAIRS];
    size_t got[MOST_PAIRS] = {0};
    for (int i = 0; i < pairs; i++)
        waiting[i] = (struct pollfd){.fd = producers[i], .events = POLLIN};
    for (int missing = pairs; missing;) {
        poll(waiting, (nfds_t)pairs, -1);
        for (int i = 0; i < pairs; i++) {
            if (waiting[i].fd < 0 || !waiting[i].revents)
                continue;
            ssize_t more = recv(producers[i], items + (size_t)i * bytes + got[i], bytes - got[i], 0);
            if (more <= 0)
                fail("the producer of pair %d ended before the measurement did", i + 1);
            got[i] += (size_t)more;
            if (got[i] == bytes) {
                waiting[i].fd = -1; /* poll passes it over */
                missing--;
            }
        }
    }
}

/* Once each producer has said its word, say one to all. */
static void answer_all(int pairs, char word)
{
    char heard[MOST_PAIRS];
    gather(pairs, heard, 1);
    for (int i = 0; i < pairs; i++)
        send_all(producers[i], &word, 1, "a producer");
}

void coordinate(char **words, int pairs)
{
    static char rows[MOST_PAIRS][ROW];
    struct settings settings;
    if (pairs < 1 || pairs > MOST_PAIRS || !understood(words, &settings))
        fail("its settings are not sound: " SETTINGS_USAGE " and 1 to %d pairs", MOST_PAIRS);
    for (int i = 0; i < pairs; i++) {
        char order[ORDER] = "", *comma = strchr(words[4 + i], ',');
        if (!comma)
            fail("%s is no PRODUCER,CONSUMER", words[4 + i]);
        *comma = 0;
        snprintf(order, ORDER, "%s %s %s %s %d %s", words[0], words[1], words[2], words[3], i + 1, comma + 1);
        producers[i] = connected_to(words[4 + i]);
        send_all(producers[i], order, ORDER, "a producer");
    }
    print_head(pairs, &settings, "TCP");
    for (int run = 0; run < settings.runs; run++) {
        answer_all(pairs, START); /* to READY */
        answer_all(pairs, END);   /* to OVER */
        gather(pairs, rows[0], ROW);
        for (int i = 0; i < pairs; i++)
            printf("%.*s", ROW, rows[i]);
    }
    print_end();
}
