/* A libcuda whose look-up answers with another address each time, to fill every table. */
#include <stdint.h>

static char code[512];
static uint64_t given;

void driver_give(uint64_t number) { given = number; }

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    (void)name, (void)version, (void)flags, (void)status;
    *found = &code[given];
    return 0;
}
