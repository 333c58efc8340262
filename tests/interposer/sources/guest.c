/*
 * A program that does what the scripts of the tests do, for machines without a Python. It waits for a line on its
 * input, so that a slot can be claimed for it and rules be added, opens the libraries named by TEST_DRIVER,
 * TEST_RUNTIME and TEST_CALLER, and takes its arguments as steps. Each step prints a line of JSON.
 *
 *   ask=VERSION,FLAGS     for a caller that looks functions up
 *   batch=GIVEN,COUNT     a batch call of the caller, with 8 or 9 parameters, all different
 *   failing=COUNT         a batch call of 9 whose failIdx is a local variable
 *   hang                  no batch call returns from now on
 *   answer=CODE           what the runtime answers
 *   vectors               a call with values in all vector registers (vectors.c)
 *   wide                  a call whose whole return register comes back
 *   frames                the stack as an unwinder found it in the last batch call
 *   threads=ROUNDS        calls of many threads at once (threads.c)
 *   copy=BYTES            copies by the implementation TEST_IMPLEMENTATION, compared afterwards
 *   fork                  the steps behind it are a child's
 *   fail=FUNCTION,VALUE   a function of faulty.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 10, DEVICE_TO_HOST = 2, PIECES = 3 };

static void *stream;
static const char *const libraries[] = {"TEST_DRIVER", "TEST_RUNTIME", "TEST_CALLER", "TEST_MORE"};

static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(3);
    }
    return found;
}

/* NULL where the variable is not set. */
static void *open_library(const char *variable)
{
    const char *path = getenv(variable);
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (path != NULL && library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return library;
}

static uint64_t number_at(const char *text, int index)
{
    for (; index > 0; index--)
        text = strchr(text, ',') + 1;
    return strtoull(text, NULL, 0);
}

static void fill(uint64_t words[WORDS], uint64_t given, uint64_t count)
{
    const char *litter = getenv("TEST_LITTER");
    for (uint64_t i = 0; i < 7; i++)
        words[i] = UINT64_C(0x1111111111111111) * (i + 1);
    words[3] = count;
    words[7] = given == 9 ? 0 : (uint64_t)stream;
    words[8] = given == 9 ? (uint64_t)stream : litter != NULL ? strtoull(litter, NULL, 0) : 0;
    words[9] = 0;
}

static void expect(const uint64_t *words)
{
    void (*check)(const uint64_t *) = (void (*)(const uint64_t *))dlsym(RTLD_DEFAULT, "check_expect");
    if (check != NULL)
        check(words);
}

static void batch(uint64_t given, uint64_t count)
{
    uint64_t words[WORDS];
    int (*copy)(const uint64_t *) = function("caller_copy");
    fill(words, given, count);
    expect(words);
    int code = copy(words);
    int (*after)(void) = function("caller_errno_after");
    printf("{\"code\": %d, \"stream\": %" PRIu64 ", \"errno\": %d}\n", code, (uint64_t)stream, after());
}

static void batch_failing(uint64_t count)
{
    uint64_t words[WORDS], fail = 0;
    int (*copy)(const uint64_t *, uint64_t *) = function("caller_copy_failing");
    fill(words, 9, count);
    int code = copy(words, &fail);
    printf("{\"code\": %d, \"fail\": %" PRIu64 "}\n", code, fail);
}

static void hang(void)
{
    void (*driver)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "driver_hang");
    void (*runtime)(void) = function("check_hang");
    if (driver != NULL)
        driver();
    runtime();
    printf("{}\n");
}

static void print_frames(void)
{
    int (*frames_of)(void **) = function("check_frames");
    void *frames[64];
    int count = frames_of(frames);
    printf("{\"frames\": [");
    for (int i = 0; i < count; i++) {
        Dl_info info = {0};
        printf("%s\"%s\"", i > 0 ? ", " : "", dladdr(frames[i], &info) != 0 ? info.dli_fname : "?");
    }
    printf("]}\n");
}

/* Pieces with a gap between them; the device has the source's bytes in the pieces and zeros in the gaps. */
static void copy(size_t size)
{
    int (*allocate)(void **, size_t) = function("cudaMalloc");
    int (*clear)(void *, int, size_t) = function("cudaMemset");
    int (*plain)(void *, const void *, size_t, int) = function("cudaMemcpy");
    int (*synchronize)(void *) = function("cudaStreamSynchronize");
    int (*enqueue)(void *const *, const void *const *, const size_t *, size_t, void *) =
        (int (*)(void *const *, const void *const *, const size_t *, size_t, void *))dlsym(
            open_library("TEST_IMPLEMENTATION"), "cudabatch_copy");
    size_t pitch = size + 512, whole = PIECES * pitch, wrong = 0;
    unsigned char *source = malloc(whole), *arrived = malloc(whole), *device;
    void *dsts[PIECES];
    const void *srcs[PIECES];
    size_t sizes[PIECES];
    int ready = allocate((void **)&device, whole) + clear(device, 0, whole);
    for (size_t i = 0; i < whole; i++)
        source[i] = (unsigned char)(i * 7 + i / 256 + 1);
    for (size_t i = 0; i < PIECES; i++) {
        dsts[i] = device + i * pitch;
        srcs[i] = source + i * pitch;
        sizes[i] = size;
    }
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    int code = enqueue(dsts, srcs, sizes, PIECES, stream);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int done = synchronize(stream) + plain(arrived, device, whole, DEVICE_TO_HOST);
    for (size_t i = 0; i < whole; i++)
        wrong += arrived[i] != (i % pitch < size ? source[i] : 0);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("{\"code\": %d, \"ready\": %d, \"done\": %d, \"wrong\": %zu, \"seconds\": %f}\n", code, ready, done, wrong,
           seconds);
}

/* The child goes on with the next step; the parent waits for it and is done. */
static void fork_here(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

static void fail(const char *text)
{
    char name[32] = "";
    sscanf(text, "%31[^,]", name);
    void (*failing)(uint64_t) = function(name);
    failing(number_at(text, 1));
}

static void do_step(const char *step)
{
    const char *value = strchr(step, '=') != NULL ? strchr(step, '=') + 1 : step;
    if (strncmp(step, "ask=", 4) == 0)
        ((void (*)(int, uint64_t))function("caller_ask"))((int)number_at(value, 0), number_at(value, 1));
    else if (strncmp(step, "batch=", 6) == 0)
        batch(number_at(value, 0), number_at(value, 1));
    else if (strncmp(step, "failing=", 8) == 0)
        batch_failing(number_at(value, 0));
    else if (strcmp(step, "hang") == 0)
        hang();
    else if (strncmp(step, "answer=", 7) == 0)
        ((void (*)(int))function("check_answer"))((int)number_at(value, 0));
    else if (strcmp(step, "vectors") == 0)
        printf("{\"changed\": %d}\n", ((int (*)(void))function("vectors_changed"))());
    else if (strcmp(step, "wide") == 0)
        printf("{\"value\": %" PRIu64 "}\n", ((uint64_t (*)(void))function("cudaMemcpyAsync_ptsz"))());
    else if (strcmp(step, "frames") == 0)
        print_frames();
    else if (strncmp(step, "threads=", 8) == 0)
        printf("{\"errors\": %ld}\n", ((long (*)(int, long))function("threads_copy"))(8, (long)number_at(value, 0)));
    else if (strncmp(step, "copy=", 5) == 0)
        copy(number_at(value, 0));
    else if (strncmp(step, "fail=", 5) == 0)
        fail(value);
    else if (strcmp(step, "fork") == 0)
        fork_here();
    else
        exit(5);
    fflush(stdout);
}

int main(int count, char **steps)
{
    char line[8];
    if (fgets(line, sizeof line, stdin) == NULL)
        return 2;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        open_library(libraries[i]);
    if (dlsym(RTLD_DEFAULT, "cudaStreamCreate") != NULL &&
        ((int (*)(void **, unsigned))function("cudaStreamCreate"))(&stream, 0) != 0)
        return 3;
    for (int i = 1; i < count; i++)
        do_step(steps[i]);
    return 0;
}
