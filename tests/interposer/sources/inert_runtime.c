/* A libcudart whose batch function touches nothing, so that a test can call it with anything. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static int answer;
static _Atomic int hanging = -1;

void check_answer(int code) { answer = code; }

/* The next batch call waits for this descriptor to become readable. */
void check_hang(int descriptor) { hanging = descriptor; }

int cudaMemcpyBatchAsync(void)
{
    char byte;
    int descriptor = atomic_exchange(&hanging, -1);
    return descriptor >= 0 && read(descriptor, &byte, 1) != 1 ? -1 : answer;
}

int cudaMemcpy3DBatchAsync(void) { return answer; }
int cudaMemcpy3DBatchAsync_ptsz(void) { return answer; }
int cudaMemcpyWithAttributesAsync(void) { return answer; }
int cudaMemcpyWithAttributesAsync_ptsz(void) { return answer; }
int cudaMemcpy3DWithAttributesAsync(void) { return answer; }
int cudaMemcpy3DWithAttributesAsync_ptsz(void) { return answer; }

int cudaStreamCreate(void **stream)
{
    static uint64_t streams[8];
    static unsigned used;
    *stream = &streams[used++];
    return 0;
}

int cudaStreamDestroy(void *stream)
{
    (void)stream;
    return answer;
}

/* Returns twice: 0 in a forked child, 7 in its parent. */
int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream)
{
    (void)dst, (void)src, (void)size, (void)kind, (void)stream;
    return fork() == 0 ? 0 : 7;
}
