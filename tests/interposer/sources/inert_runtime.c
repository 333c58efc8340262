/* A libcudart whose batch function touches nothing, so that a test can call it with anything. */
#include <stdint.h>
#include <stdlib.h>

static int answer;

void check_answer(int code) { answer = code; }

int cudaMemcpyBatchAsync(void) { return answer; }

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
