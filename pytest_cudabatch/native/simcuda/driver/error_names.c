/* Names and texts of CUresults. Both queries work without cuInit. */
#include "../error_table.h"
#include "api.h"

static int answer(const char **target, const char *text)
{
    if (target == NULL)
        return CUDA_INVALID_VALUE;
    *target = text;
    return text == NULL ? CUDA_INVALID_VALUE : CUDA_OK;
}

int cuGetErrorName(int code, const char **name)
{
    const struct error_entry *entry = error_find(code);
    return answer(name, entry == NULL ? NULL : entry->driver_name);
}

int cuGetErrorString(int code, const char **text)
{
    const struct error_entry *entry = error_find(code);
    return answer(text, entry == NULL || entry->driver_name == NULL ? NULL : entry->text);
}
