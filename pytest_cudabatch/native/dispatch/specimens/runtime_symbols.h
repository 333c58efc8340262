/* A runtime's functions by name, for code that leaves finding them to the dynamic linker. It takes all of them
 * from the first libcudart in its search order, so that the version is the function's where one library has both.
 *
 * Weak: a runtime older than 12.8 has no batch function, and the address is then NULL. The batch function has one
 * of two parameter lists under one name, so it has two names here; both pass one word more (see specimen.h).
 */
#ifndef CUDABATCH_RUNTIME_SYMBOLS_H
#define CUDABATCH_RUNTIME_SYMBOLS_H

#include "specimen.h"

#define FROM_RUNTIME(name) __asm__(name) __attribute__((weak, visibility("default")))

extern int runtime_batch9(void *const *, const void *const *, const size_t *, size_t,
                          const struct cudabatch_attributes *, const size_t *, size_t, size_t *, void *, uintptr_t)
    FROM_RUNTIME("cudaMemcpyBatchAsync");
extern int runtime_batch8(void *const *, const void *const *, const size_t *, size_t,
                          const struct cudabatch_attributes *, const size_t *, size_t, void *, uintptr_t)
    FROM_RUNTIME("cudaMemcpyBatchAsync");
extern int runtime_copy(void *dst, const void *src, size_t size, int kind, void *stream)
    FROM_RUNTIME("cudaMemcpyAsync");
extern int runtime_last_error(void) FROM_RUNTIME("cudaGetLastError");
extern int runtime_version(int *version) FROM_RUNTIME("cudaRuntimeGetVersion");

#endif
