/*
 * What the runtime's entries have in common: get ready, ask the driver, remember the error.
 */
#ifndef CUDABATCH_FORWARD_H
#define CUDABATCH_FORWARD_H

#include "driver_link.h"

/*
 * Remembers `code`, unless it is CUDA_OK, as the thread's last error until cudaGetLastError reads it, and
 * returns it. Every entry that can fail ends with this.
 */
int record(int code);

/* The body of an entry: evaluates `call`, which may use `driver`, when the runtime is ready. */
#define WITH_DRIVER(call)                   \
    do {                                    \
        const struct driver *driver;        \
        int code = runtime_ready(&driver);  \
        if (code == CUDA_OK)                \
            code = (call);                  \
        return record(code);                \
    } while (0)

/* The body of an entry that calls one driver function, `legacy` or `per_thread`, or lacks it. */
#define FORWARD(functions, member, ...)                                                  \
    WITH_DRIVER(driver->functions.member == NULL ? CUDA_CALL_REQUIRES_NEWER_DRIVER       \
                                                 : driver->functions.member(__VA_ARGS__))

#endif
