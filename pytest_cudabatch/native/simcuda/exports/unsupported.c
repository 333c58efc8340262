/* The one line that a function which is not simulated writes; see unsupported.h. */
#include "unsupported.h"

#include <stdio.h>
#include <unistd.h>


int unsupported(const char *name, atomic_bool *told)
{
    char line[160];
    if (!atomic_exchange(told, true)) {
        int length = snprintf(line, sizeof line, "simulated CUDA: %s is not supported (simulated device)\n", name);
        if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
            return CUDA_NOT_SUPPORTED; /* nobody listens; the answer is the same */
    }
    return CUDA_NOT_SUPPORTED;
}
