/* A layer between a program and CUDA in miniature: its dlsym answers with its own batch function, and leaves
 * everything else to the C library. Specimen preloaded-dlsym is linked with it; tests preload it.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef __aarch64__
#define FIRST_GLIBC "GLIBC_2.17"
#else
#define FIRST_GLIBC "GLIBC_2.2.5"
#endif

typedef void *symbol_lookup(void *handle, const char *name);
typedef int any_batch(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                      uintptr_t, uintptr_t);

/* Of the runtime that was asked about last; written before any call of what was answered. */
static any_batch *real_batch;

/* Passes on the words of either parameter list, and one more. Static: the dynamic linker has never heard of it. */
static int pass_on(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g,
                   uintptr_t h, uintptr_t i, uintptr_t j)
{
    return real_batch(a, b, c, d, e, f, g, h, i, j);
}

static void *address_of(any_batch *function)
{
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}

EXPORT void *dlsym(void *handle, const char *name)
{
    symbol_lookup *real;
    void *found = dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
    memcpy(&real, &found, sizeof real);
    if (strcmp(name, "cudaMemcpyBatchAsync") != 0)
        return real(handle, name); /* a jump, by which the C library sees the layer's own caller */
    found = real(handle, name);
    if (found == NULL)
        return NULL;
    memcpy(&real_batch, &found, sizeof real_batch);
    return address_of(pass_on);
}
