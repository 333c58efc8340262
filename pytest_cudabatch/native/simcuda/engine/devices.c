/* The setting and each thread's device; see devices.h. */
#include "devices.h"

#include <stdio.h>
#include <stdlib.h>

/* Written once, by devices_start. */
static int count = 1;

static _Thread_local int current;

int devices_start(void)
{
    const char *text = getenv("CUDABATCH_SIM_DEVICES");
    if (text == NULL)
        return CUDA_OK;
    if (text[0] >= '1' && text[0] <= '0' + MOST_DEVICES && text[1] == '\0') {
        count = text[0] - '0';
        return CUDA_OK;
    }
    fprintf(stderr, "pytest-cudabatch: CUDABATCH_SIM_DEVICES=%s is no number of devices: set it to 1 ... %d\n", text,
            MOST_DEVICES);
    return CUDA_INVALID_VALUE;
}

int device_count(void)
{
    return count;
}

int device_current(void)
{
    return current;
}

void device_set_current(int device)
{
    current = device;
}
