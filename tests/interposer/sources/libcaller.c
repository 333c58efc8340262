/*
 * Code under test in miniature. It gets the batch function in the way that OBTAIN says and calls it with the
 * words that it is given, so that a test decides about every parameter. A call with one word more than the
 * function's parameters decides about the stack behind them too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define LINKED 1
#define BY_DEFAULT 2
#define BY_HANDLE 3
#define BY_VERSION 4
#define BY_LOOKUP 5
#define BY_ENTRY_POINT 6
#define ADDRESS_TAKEN 7
#define COMPUTED 8
#define BY_OLD_LOOKUP 9
#define BY_ENTRY_POINT_OF_VERSION 10

typedef int call10(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                   uint64_t);

#if OBTAIN == LINKED || OBTAIN == ADDRESS_TAKEN || OBTAIN == COMPUTED
#define KNOWN_TO_THE_LINKER
#endif

#ifdef KNOWN_TO_THE_LINKER
extern int linked10(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t) __asm__("cudaMemcpyBatchAsync");
#endif

static int look_up_version = 12080;
static uint64_t look_up_flags = 0;

void caller_ask(int version, uint64_t flags)
{
    look_up_version = version;
    look_up_flags = flags;
}

#if OBTAIN == COMPUTED
/* One byte beyond the function, where nobody who replaces functions would look. */
__asm__(".section .data.rel.ro, \"aw\"\n.balign 8\nbeyond: .quad cudaMemcpyBatchAsync + 1\n.text\n");
extern char *const beyond __attribute__((visibility("hidden")));
#elif OBTAIN == ADDRESS_TAKEN
/* Read as it is, or the compiler would make a plain call of it. */
static call10 *const volatile taken[] = {linked10};
#endif

#if OBTAIN != LINKED
static void *obtain(void)
{
#if OBTAIN == ADDRESS_TAKEN
    return (void *)taken[0];
#elif OBTAIN == COMPUTED
    return beyond - 1;
#elif OBTAIN == BY_DEFAULT
    return dlsym(RTLD_DEFAULT, "cudaMemcpyBatchAsync");
#elif OBTAIN == BY_HANDLE
    return dlsym(dlopen(getenv("TEST_LIBCUDART"), RTLD_NOW | RTLD_NOLOAD), "cudaMemcpyBatchAsync");
#elif OBTAIN == BY_VERSION
    return dlvsym(RTLD_DEFAULT, "cudaMemcpyBatchAsync", getenv("TEST_VERSION_NODE"));
#elif OBTAIN == BY_LOOKUP
    int (*look_up)(const char *, void **, int, uint64_t, int *) = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
    void *found = NULL;
    int status;
    return look_up("cuMemcpyBatchAsync", &found, look_up_version, look_up_flags, &status) == 0 ? found : NULL;
#elif OBTAIN == BY_OLD_LOOKUP
    int (*newest)(const char *, void **, int, uint64_t, int *) = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
    int (*look_up)(const char *, void **, int, uint64_t);
    void *found = NULL;
    int status;
    if (newest("cuGetProcAddress", (void **)&look_up, 11030, 0, &status) != 0)
        return NULL;
    return look_up("cuMemcpyBatchAsync", &found, look_up_version, look_up_flags) == 0 ? found : NULL;
#elif OBTAIN == BY_ENTRY_POINT_OF_VERSION
    int (*look_up)(const char *, void **, unsigned, uint64_t, int *) =
        dlsym(RTLD_DEFAULT, "cudaGetDriverEntryPointByVersion");
    void *found = NULL;
    int status;
    return look_up("cuMemcpyBatchAsync", &found, 12080, look_up_flags, &status) == 0 ? found : NULL;
#elif OBTAIN == BY_ENTRY_POINT
    int (*look_up)(const char *, void **, uint64_t, int *) = dlsym(RTLD_DEFAULT, "cudaGetDriverEntryPoint");
    void *found = NULL;
    int status;
    return look_up("cuMemcpyBatchAsync", &found, look_up_flags, &status) == 0 ? found : NULL;
#endif
}
#endif

static int errno_after;

int caller_errno_after(void) { return errno_after; }

/* Ten words: all parameters of either ABI and at least one stack word behind. -1: the function is not there. */
__attribute__((noinline)) int caller_copy(const uint64_t *w)
{
#if OBTAIN == LINKED
    errno = 77;
    int code = linked10(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]);
#else
    call10 *copy = (call10 *)obtain();
    if (copy == NULL)
        return -1;
    errno = 77;
    int code = copy(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]);
#endif
    errno_after = errno;
    return code;
}

/* As caller_copy, with a failIdx that is a local variable; its value afterwards goes to *fail. */
int caller_copy_failing(const uint64_t *w, uint64_t *fail)
{
    volatile uint64_t local = 0xdead;
    uint64_t words[10] = {w[0], w[1], w[2], w[3], w[4], w[5], w[6], (uint64_t)&local, w[8], w[9]};
    int code = caller_copy(words);
    *fail = local;
    return code;
}

/* Calls a batch function for 3D copies with a failIdx that is a local variable. */
int caller_copy_3d_failing(int (*copy)(uint64_t, uint64_t, volatile uint64_t *, uint64_t, uint64_t), uint64_t stream)
{
    volatile uint64_t fail = 0;
    return copy(7, 0, &fail, 0, stream) + (int)fail;
}

#ifdef CALL_WHEN_LOADED
__attribute__((constructor)) static void call_when_loaded(void)
{
    static const uint64_t nothing[10];
    caller_copy(nothing);
}
#endif
