/* A libcuda of a few functions that answers look-ups by version and flags as a driver 13.0 does. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { INVALID_VALUE = 1, NOT_FOUND = 500, NEWEST = 13000, PER_THREAD = 2 };

static int answer;

void driver_answer(int code) { answer = code; }

static int hanging;

/* From now on no batch call returns. */
void driver_hang(void) { hanging = 1; }

static int answer_or_hang(void)
{
    while (hanging)
        pause();
    return answer;
}

int cuMemcpyBatchAsync(void *a, void *b, void *c, size_t n, void *d, void *e, size_t m, size_t *fail, void *stream)
{
    (void)a, (void)b, (void)c, (void)n, (void)d, (void)e, (void)m, (void)fail, (void)stream;
    return answer_or_hang();
}

int cuMemcpyBatchAsync_v2(void *a, void *b, void *c, size_t n, void *d, void *e, size_t m, void *stream)
{
    (void)a, (void)b, (void)c, (void)n, (void)d, (void)e, (void)m, (void)stream;
    return answer_or_hang();
}

int cuMemcpyBatchAsync_ptsz(void *a, void *b, void *c, size_t n, void *d, void *e, size_t m, size_t *f, void *s)
{
    return cuMemcpyBatchAsync(a, b, c, n, d, e, m, f, s) + 1000;
}

int cuMemcpyHtoDAsync_v2(uint64_t dst, const void *src, size_t size, void *stream)
{
    (void)dst, (void)src, (void)size, (void)stream;
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    static uint64_t streams[16];
    static unsigned used;
    (void)flags;
    *stream = &streams[used++];
    return 0;
}

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags);

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    *found = NULL;
    if (status != NULL)
        *status = 0;
    if (version > NEWEST)
        return INVALID_VALUE;
    if (strcmp(name, "cuMemcpyBatchAsync") == 0 && version >= 12080)
        *found = version >= 13000     ? (void *)cuMemcpyBatchAsync_v2
                 : flags == PER_THREAD ? (void *)cuMemcpyBatchAsync_ptsz
                                       : (void *)cuMemcpyBatchAsync;
    else if (strcmp(name, "cuMemcpyHtoDAsync") == 0)
        *found = (void *)cuMemcpyHtoDAsync_v2;
    else if (strcmp(name, "cuStreamCreate") == 0)
        *found = (void *)cuStreamCreate;
    else if (strcmp(name, "cuGetProcAddress") == 0)
        *found = version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
    else if (strcmp(name, "cuMemcpyAsync") == 0)
        return 0; /* the field has seen success with NULL */
    return *found != NULL ? 0 : NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
