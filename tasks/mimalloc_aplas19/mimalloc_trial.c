/* Allocates as it is told, by whichever allocator this process happens to have, and prints what it saw as one JSON object.

   trial trace < TRACE          replays a drawn trace over threads and checks the content of every block
   trial larson THREADS ROUNDS  times threads that free each other's blocks
   trial order                  looks at the addresses of blocks of one size
   trial twice                  frees a block twice, and looks whether it is given out twice
   trial arguments ARG...       prints the length of each ARG and exits with 7 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 16, MOST_OPERATIONS = 100000, MOST_SLOTS = 10000 };

static pthread_barrier_t barrier;

static void fail(const char *why) {
    fprintf(stderr, "trial: %s\n", why);
    exit(1);
}

static void run_threads(long count, void *(*body)(void *)) {
    pthread_t threads[MOST_THREADS];
    if (count > MOST_THREADS) fail("too many threads");
    pthread_barrier_init(&barrier, NULL, count);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)i)) fail("no thread");
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* ---- who allocates here ---- */

static _Bool (*in_heap_region)(const void *);

/* The mapped file in which an address lies, by the kernel's own map. */
static void file_of(void *address, char path[4096]) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[8192];
    strcpy(path, "nowhere");
    while (fgets(line, sizeof line, maps)) {
        uintptr_t low, high;
        char name[4096] = "nowhere";
        sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &low, &high, name);
        if (low <= (uintptr_t)address && (uintptr_t)address < high) strcpy(path, name);
    }
    fclose(maps);
}

static void print_allocator(void) {
    char path[4096], *copy = strdup("allocated within the C library");
    int (*version)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "mi_version");
    in_heap_region = (_Bool (*)(const void *))dlsym(RTLD_DEFAULT, "mi_is_in_heap_region");
    file_of(dlsym(RTLD_DEFAULT, "malloc"), path);
    printf("{\"malloc\": \"%s\", \"version\": %d, \"strdup_is_its_own\": %s", path, version ? version() : 0,
           in_heap_region && in_heap_region(copy) ? "true" : "false");
    free(copy);
}

/* ---- trace: in each phase a thread has other slots, so blocks are freed where they were not allocated ---- */

static struct operation { int phase, thread, slot; char kind; size_t size, align; } operations[MOST_OPERATIONS];
static struct slot { unsigned char *block; size_t size; int tag; } slots[MOST_SLOTS];
static long operation_count, phase_count;
static long allocated, corrupt, unzeroed, misaligned, foreign;

#define COUNT(counter) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED)

static unsigned char pattern(int tag, size_t i) { return tag + 7 * i; }

static int holds(const unsigned char *block, size_t size, int tag) {
    for (size_t i = 0; i < size; i++)
        if (block[i] != pattern(tag, i)) return 0;
    return 1;
}

static void operate(const struct operation *o, struct slot *s) {
    unsigned char *block = NULL;
    size_t kept = o->size < s->size ? o->size : s->size;
    if (s->block && !holds(s->block, s->size, s->tag)) COUNT(corrupt);
    switch (o->kind) {
    case 'm': block = malloc(o->size); break;
    case 'c':
        block = calloc(1, o->size);
        for (size_t i = 0; block && i < o->size; i++)
            if (block[i]) { COUNT(unzeroed); break; }
        break;
    case 'a':
        if (posix_memalign((void **)&block, o->align, o->size)) block = NULL;
        if ((uintptr_t)block % o->align) COUNT(misaligned);
        break;
    case 'r':
        block = realloc(s->block, o->size);
        if (block && !holds(block, kept, s->tag)) COUNT(corrupt);
        break;
    case 'f': free(s->block); *s = (struct slot){0}; return;
    }
    if (!block) fail("out of memory");
    COUNT(allocated);
    if (!in_heap_region || !in_heap_region(block)) COUNT(foreign);
    *s = (struct slot){block, o->size, (o - operations) & 255};
    for (size_t i = 0; i < s->size; i++) block[i] = pattern(s->tag, i);
}

static void *replay(void *number) {
    long next = 0;
    for (long phase = 0; phase < phase_count; phase++) {
        for (; next < operation_count && operations[next].phase == phase; next++)
            if (operations[next].thread == (long)number) operate(&operations[next], &slots[operations[next].slot]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static uint32_t crc32(uint32_t crc, const unsigned char *bytes, size_t count) {
    for (crc = ~crc; count--;) {
        crc ^= *bytes++;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void trace(void) {
    int threads = 0, n;
    struct operation o;
    while ((n = scanf("%d %d %c %d %zu %zu", &o.phase, &o.thread, &o.kind, &o.slot, &o.size, &o.align)) == 6) {
        if (operation_count == MOST_OPERATIONS || o.slot >= MOST_SLOTS) fail("the trace is too long");
        if (o.thread >= threads) threads = o.thread + 1;
        phase_count = o.phase + 1;
        operations[operation_count++] = o;
    }
    run_threads(threads, replay);
    uint32_t crc = 0;
    long live = 0;
    for (int i = 0; i < MOST_SLOTS; i++) {
        live += slots[i].block != NULL;
        crc = crc32(crc, slots[i].block, slots[i].size);
    }
    printf(", \"allocated\": %ld, \"live\": %ld, \"crc\": %u, \"corrupt\": %ld, \"unzeroed\": %ld, \"misaligned\": %ld, "
           "\"foreign\": %ld", allocated, live, crc, corrupt, unzeroed, misaligned, foreign);
}

/* ---- larson: the server benchmark of that name, whose threads go on with blocks of others ---- */

enum { BLOCKS = 1000, STEPS = 20000 };

static char *holdings[MOST_THREADS][BLOCKS];
static long workers, rounds;

static void *serve(void *number) {
    uint32_t chance = 2463534242u + (long)number;
    for (long round = 0; round < rounds; round++) {
        char **blocks = holdings[((long)number + round) % workers];
        for (long step = 0; step < STEPS; step++) {
            chance ^= chance << 13, chance ^= chance >> 17, chance ^= chance << 5;
            char **block = &blocks[chance % BLOCKS];
            size_t size = 8 + (chance >> 12) % 1993;
            free(*block);
            *block = malloc(size);
            (*block)[0] = (*block)[size - 1] = 1;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void larson(void) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    run_threads(workers, serve);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) * 1e-9;
    printf(", \"operations_per_second\": %.0f", workers * rounds * STEPS / seconds);
}

/* ---- order and misuse ---- */

static void order(void) {
    enum { ROW = 64, SIZE = 416 };
    char *row[ROW];
    long ascending = 0;
    for (int i = 0; i < ROW; i++) {
        row[i] = malloc(SIZE);
        ascending += i && row[i] > row[i - 1];
    }
    printf(", \"steps\": %d, \"ascending\": %ld", ROW - 1, ascending);
}

static void twice(void) {
    enum { MANY = 2000, SIZE = 48 };
    static char *many[MANY];
    char *volatile neighbour = malloc(SIZE), *volatile freed = malloc(SIZE); /* else compilers leave them out */
    long repeated = 0;
    free(freed);
    free(freed);
    for (int i = 0; i < MANY; i++) {
        many[i] = malloc(SIZE);
        for (int j = 0; j < i; j++) repeated += many[i] == many[j];
    }
    free(neighbour);
    printf(", \"handed_out_twice\": %ld", repeated);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    print_allocator();
    if (!strcmp(what, "trace")) trace();
    else if (!strcmp(what, "larson") && count == 4) workers = atol(arguments[2]), rounds = atol(arguments[3]), larson();
    else if (!strcmp(what, "order")) order();
    else if (!strcmp(what, "twice")) twice();
    else if (!strcmp(what, "arguments")) {
        printf(", \"lengths\": [");
        for (int i = 2; i < count; i++) printf(i > 2 ? ", %zu" : "%zu", strlen(arguments[i]));
        puts("]}");
        return 7;
    } else fail("usage: trial trace | larson THREADS ROUNDS | order | twice | arguments ARG...");
    puts("}");
    return 0;
}
