/*
 * A libcudart of a few functions: its batch function has 9 parameters in libcudart.so.12 (RUNTIME_MAJOR 12)
 * and 8 in libcudart.so.13. It opens libcuda.so.1 if there is one, asks it for its functions as a real one
 * does, and calls the driver through those pointers. A stream is a page that cannot be written and whose
 * first word points to itself; it is followed before anything else, so that a call by the wrong ABI faults.
 *
 * By check_* a test says what to expect and asks what was seen: a copy function called with other parameters
 * answers 777, each sets errno to 4711 and keeps the place it was called from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOT_AS_EXPECTED = 777, ERRNO_AFTER = 4711 };

typedef int look_up(const char *, void **, int, uint64_t, int *);
typedef int driver_batch9(void *, void *, void *, size_t, void *, void *, size_t, size_t *, void *);
typedef int driver_batch8(void *, void *, void *, size_t, void *, void *, size_t, void *);
typedef int driver_copy(uint64_t, const void *, size_t, void *);

static driver_batch9 *batch9;
static driver_batch8 *batch8;
static driver_copy *host_to_device;
static look_up *driver_look_up;

static void *ask(const char *name, int version, uint64_t flags)
{
    void *found = NULL;
    int status;
    return driver_look_up(name, &found, version, flags, &status) == 0 ? found : NULL;
}

__attribute__((constructor)) static void open_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL)
        return;
    driver_look_up = (look_up *)dlsym(driver, "cuGetProcAddress_v2");
    batch9 = (driver_batch9 *)ask("cuMemcpyBatchAsync", 12080, 0);
    batch8 = (driver_batch8 *)ask("cuMemcpyBatchAsync", 13000, 0);
    host_to_device = (driver_copy *)ask("cuMemcpyHtoDAsync", 12080, 0);
}

static uint64_t expected[9];
static int expecting;
static int answer;

void check_expect(const uint64_t *parameters)
{
    memcpy(expected, parameters, sizeof expected);
    expecting = 1;
}

void check_answer(int code) { answer = code; }

static int hanging;

/* From now on no batch call returns. */
void check_hang(void) { hanging = 1; }

static void hang_if_asked(void)
{
    while (hanging)
        pause();
}

static void *called_from;
static int errno_before;

#define NOTE_CALLER() (called_from = __builtin_return_address(0), errno_before = errno)

const char *check_caller_file(void)
{
    Dl_info info;
    return dladdr(called_from, &info) != 0 ? info.dli_fname : "?";
}

uint64_t check_caller_offset(void)
{
    Dl_info info;
    return dladdr(called_from, &info) != 0 ? (uint64_t)called_from - (uint64_t)info.dli_fbase : 0;
}

int check_errno_before(void) { return errno_before; }

static void *frames[64];
static int frame_count;

/* Addresses of the frames above the last copy call, as an unwinder finds them. */
int check_frames(void **to)
{
    memcpy(to, frames, sizeof frames);
    return frame_count;
}

static int judge(const uint64_t *got, int count)
{
    frame_count = backtrace(frames, 64);
    errno = ERRNO_AFTER;
    if (expecting && memcmp(got, expected, (size_t)count * sizeof *got) != 0)
        return NOT_AS_EXPECTED;
    return answer;
}

static void follow_stream(void *stream)
{
    if ((uintptr_t)stream > 2 && **(void **volatile *)stream != stream)
        abort();
}

#define WORD(parameter) (uint64_t)(parameter)

#if RUNTIME_MAJOR == 12
int cudaMemcpyBatchAsync(void *dsts, void *srcs, void *sizes, size_t count, void *attributes, void *indexes,
                         size_t attribute_count, size_t *fail, void *stream)
{
    uint64_t got[] = {WORD(dsts),    WORD(srcs),    WORD(sizes), WORD(count), WORD(attributes),
                      WORD(indexes), attribute_count, WORD(fail), WORD(stream)};
    NOTE_CALLER();
    follow_stream(stream);
    hang_if_asked();
    if (fail != NULL)
        *fail = SIZE_MAX;
    int code = batch9 ? batch9(dsts, srcs, sizes, count, attributes, indexes, attribute_count, fail, stream) : 0;
    return code != 0 ? code : judge(got, 9);
}

/* Ends by jumping to the driver, as a compiler makes thin wrappers end. */
int cudaMemcpyBatchAsync_ptsz(void *dsts, void *srcs, void *sizes, size_t count, void *attributes, void *indexes,
                              size_t attribute_count, size_t *fail, void *stream)
{
    return batch9(dsts, srcs, sizes, count, attributes, indexes, attribute_count, fail, stream);
}
#else
int cudaMemcpyBatchAsync(void *dsts, void *srcs, void *sizes, size_t count, void *attributes, void *indexes,
                         size_t attribute_count, void *stream)
{
    uint64_t got[] = {WORD(dsts),       WORD(srcs),    WORD(sizes),     WORD(count),
                      WORD(attributes), WORD(indexes), attribute_count, WORD(stream)};
    NOTE_CALLER();
    follow_stream(stream);
    hang_if_asked();
    int code = batch8 ? batch8(dsts, srcs, sizes, count, attributes, indexes, attribute_count, stream) : 0;
    return code != 0 ? code : judge(got, 8);
}
#endif

int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream)
{
    uint64_t got[] = {WORD(dst), WORD(src), size, (uint64_t)kind, WORD(stream)};
    NOTE_CALLER();
    int code = host_to_device ? host_to_device((uint64_t)dst, src, size, stream) : 0;
    return code != 0 ? code : judge(got, 5);
}

int cudaStreamCreate(void **stream)
{
    void **page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = page;
    mprotect(page, 4096, PROT_READ);
    *stream = page;
    return 0;
}

int cudaStreamDestroy(void *stream)
{
    (void)stream; /* stays mapped, so that a use after it is seen and not a fault */
    return answer;
}

int cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, uint64_t flags, int *status)
{
    return driver_look_up ? driver_look_up(name, found, (int)version, flags, status) : 35;
}

int cudaGetDriverEntryPoint(const char *name, void **found, uint64_t flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(name, found, RUNTIME_MAJOR == 12 ? 12080 : 13000, flags, status);
}

/* A watched function whose whole rax comes back: declared as it is here only by a test that looks at it. */
uint64_t cudaMemcpyAsync_ptsz(void)
{
    return UINT64_C(0x1122334455667788);
}
