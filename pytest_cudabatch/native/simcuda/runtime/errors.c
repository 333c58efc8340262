/* Last errors, names and texts. None of them needs a driver. */
#include "../error_table.h"
#include "api.h"
#include "forward.h"

/* Of the calling thread. */
static _Thread_local int last_error;

int record(int code)
{
    if (code != CUDA_OK)
        last_error = code;
    return code;
}

int cudaGetLastError(void)
{
    int code = last_error;
    last_error = CUDA_OK;
    return code;
}

int cudaPeekAtLastError(void)
{
    return last_error;
}

static const char UNKNOWN[] = "unrecognized error code";

const char *cudaGetErrorName(int code)
{
    const struct error_entry *entry = error_find(code);
    return entry == NULL ? UNKNOWN : entry->runtime_name;
}

const char *cudaGetErrorString(int code)
{
    const struct error_entry *entry = error_find(code);
    return entry == NULL ? UNKNOWN : entry->text;
}
