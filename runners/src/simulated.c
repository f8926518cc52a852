/*
 * HPL without its arithmetic, for SimGrid's SMPI: HPL's sources run as they are, on as many simulated
 * nodes as they ask for, and exchange the messages that they would exchange; only what they would
 * compute is replaced by the time that it would take (simulated.h).
 *
 * In this file: time, memory, MPI. In simulated_hpl.c: the BLAS and what else HPL computes.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "payload.h"
#include "rendezvous.h"
#include "simulated.h"

struct rates rates;

/* ---- time ---- */

static double due;              /* s charged and not simulated yet */
static double computed;         /* s simulated so far */
static double messages, bytes;  /* sent so far */
static int idle_polls;          /* failed MPI_Iprobe since this node last did anything else */

void charge(double seconds)
{
    due += seconds;
    idle_polls = 0;
}

/* SMPI's smpi_execute would do as well, but takes the simulator a fifth longer. */
static void compute_what_is_due(void)
{
    double now = due;
    if (now > 0.0) {
        due = 0.0;
        computed += now;
        sg_actor_sleep_for(now);
    }
}

static void before_mpi(void)
{
    compute_what_is_due();
    idle_polls = 0;
}

/* SMPI's own MPI_Abort ends with exit code 0. All nodes are one process, so this ends them all. */
int MPI_Abort(MPI_Comm comm, int code)
{
    fflush(NULL);
    _exit(code == 0 ? 1 : code);
}

static void quit(const char *fault, const char *detail)
{
    fprintf(stderr, "xhpl_simulated: %s%s\n", fault, detail);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void read_rates(void)
{
#define AS_ENTRY(name) {#name, &rates.name, 0},
    struct { const char *name; double *value; int found; } known[] = {RATES(AS_ENTRY)};
    const int count = sizeof known / sizeof known[0];
    char line[256], name[64];
    double value;
    FILE *file = fopen("rates.txt", "r");
    if (file == NULL)
        quit("rates.txt cannot be read", "");
    while (fgets(line, sizeof line, file) != NULL) {
        int i = 0;
        line[strcspn(line, "#")] = '\0';
        if (sscanf(line, "%63s", name) != 1)
            continue;
        while (i < count && strcmp(name, known[i].name) != 0)
            i++;
        if (i == count)
            quit("rates.txt has an unknown rate: ", name);
        if (sscanf(line, "%*s %lf", &value) != 1 || !(value >= 0.0))
            quit("rates.txt has no value of at least 0 for ", name);
        *known[i].value = value;
        known[i].found = 1;
    }
    fclose(file);
    for (int i = 0; i < count; i++)
        if (!known[i].found)
            quit("rates.txt lacks ", known[i].name);
}

/* ---- memory ----
 *
 * All nodes live in one process. What HPL allocates in bulk (panels, workspaces, small matrices) is for
 * all of them the same piece of SMPI's folded memory: a message from or to it takes its time in the
 * network, but SMPI copies nothing. A larger matrix is mapped and never touched, which costs nothing.
 */
#define BULK ((size_t)64 << 10)    /* bytes: smaller allocations are ordinary memory */
#define FOLDED ((size_t)512 << 20) /* bytes of addresses, of 1 MiB of memory; panels of some 100 MB fit in */

void *__real_malloc(size_t size);
void __real_free(void *block);

static char *folded;
static void *mapped;
static size_t mapped_size;

void *__wrap_malloc(size_t size)
{
    if (size < BULK || folded == NULL)
        return __real_malloc(size);
    if (size <= FOLDED)
        return folded;
    if (mapped != NULL)
        quit("a second allocation beyond 512 MiB", "");
    mapped_size = size;
    mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        mapped = NULL;
    return mapped;
}

void __wrap_free(void *block)
{
    if (block != NULL && block == mapped) {
        munmap(mapped, mapped_size);
        mapped = NULL;
    } else if (block == NULL || (char *)block != folded) {
        __real_free(block);
    }
}

/* ---- MPI, through its profiling interface: before a node communicates it computes what is due ---- */

static void count_message(enum payload_call call, int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    messages += 1.0;
    bytes += (double)count * size;
    payload_count(call, (double)count * size);
}

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv), rank;
    char *shared = NULL;
    read_rates();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        shared = smpi_shared_malloc(FOLDED, __FILE__, __LINE__);
    PMPI_Bcast(&shared, sizeof shared, MPI_BYTE, 0, MPI_COMM_WORLD);
    folded = shared;
    rendezvous_begin();
    return result;
}

/* What the simulation itself took. All nodes are one process; of its memory only what is really there counts, the
   folded piece once (RSS counts it wherever it is mapped). */
static void print_simulators_own(void)
{
    struct rusage used;
    char line[128];
    double kib = 0.0;
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    while (rollup != NULL && fgets(line, sizeof line, rollup) != NULL)
        if (sscanf(line, "Pss: %lf", &kib) == 1)
            break;
    if (rollup != NULL)
        fclose(rollup);
    getrusage(RUSAGE_SELF, &used);
    printf("simulator: %.3f CPU s, %.1f MB\n",
           used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
           kib * 1024 / 1e6);
}

int MPI_Finalize(void)
{
    int rank, ranks;
    before_mpi();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double mine[3] = {computed, messages, bytes}, *all = __real_malloc(3 * sizeof *all * (size_t)ranks);
    PMPI_Gather(mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("\nSimulated: what each rank did, all problems together\n");
        printf("rank      computed s  messages sent            bytes sent\n");
        for (int r = 0; r < ranks; r++)
            printf("%4d %15.6f %14.0f %21.0f\n", r, all[3 * r], all[3 * r + 1], all[3 * r + 2]);
        print_simulators_own();
    }
    payload_print(stdout);
    rendezvous_end();
    if (rank == 0)
        printf("end of simulated\n");
    __real_free(all);
    return PMPI_Finalize();
}

/* A node that reads the clock need not stop for it (SMPI's own makes it sleep for a moment). */
double MPI_Wtime(void)
{
    return simgrid_get_clock() + due;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    before_mpi();
    count_message(PAYLOAD_MPI_Send, count, type);
    return rendezvous_send(buffer, count, type, to, tag, comm);
}

int MPI_Ssend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    before_mpi();
    count_message(PAYLOAD_MPI_Ssend, count, type);
    MPI_Request request;
    rendezvous_issend(buffer, count, type, to, tag, comm, &request);
    return rendezvous_wait(&request, MPI_STATUS_IGNORE);
}

int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    before_mpi();
    count_message(PAYLOAD_MPI_Issend, count, type);
    return rendezvous_issend(buffer, count, type, to, tag, comm, request);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    before_mpi();
    return rendezvous_recv(buffer, count, type, from, tag, comm, status);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    before_mpi();
    return rendezvous_irecv(buffer, count, type, from, tag, comm, request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    before_mpi();
    return rendezvous_wait(request, status);
}

/*
 * With look-ahead HPL asks between two blocks of columns, and between the steps of a row swap, whether the panel
 * has come; with nothing left to do, or without look-ahead, it only goes on asking. Time would stand still in that
 * loop (or, with SMPI's own remedy, pass in steps that are not HPL's). So a node that only waits is told yes: in
 * HPL a yes is followed by the MPI_Recv of that very message, and that waits for it.
 */
int patience;

void wait_from_now_on(void)
{
    idle_polls = patience;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status)
{
    int result = MPI_SUCCESS;
    compute_what_is_due();
    if (idle_polls >= patience) {
        *there = 1;
    } else {
        result = rendezvous_iprobe(from, tag, comm, there, status);
        idle_polls++;
    }
    return result;
}
