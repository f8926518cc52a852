/* Loaded into a program (LD_PRELOAD), this gives it MPTCP wherever it asks for TCP.
 *
 * Nothing else has to change: an MPTCP socket is used as a TCP socket, and is one towards a peer that knows no MPTCP
 * (Linux's Documentation/networking/mptcp.rst).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

int socket(int family, int type, int protocol)
{
    int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    int is_internet = family == AF_INET || family == AF_INET6;
    int is_stream = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;

    if (is_internet && is_stream && (protocol == 0 || protocol == IPPROTO_TCP))
        protocol = IPPROTO_MPTCP;
    return next(family, type, protocol);
}
