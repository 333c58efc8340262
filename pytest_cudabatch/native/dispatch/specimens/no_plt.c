/* Specimen no-plt: right, and built with -fno-plt. Each call goes through a pointer that a relocation fills, not
 * through a PLT, so the dynamic linker's audit interface does not report it by itself.
 */
#include "runtime_symbols.h"

/* These calls are the specimen: the compiler makes each of them `call *function@GOTPCREL(%rip)`. */
static int call9(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                 const struct cudabatch_attributes *attributes, const size_t *indices, size_t attribute_count,
                 size_t *fail_idx, void *stream, uintptr_t beyond)
{
    return runtime_batch9(dsts, srcs, sizes, count, attributes, indices, attribute_count, fail_idx, stream, beyond);
}

static int call8(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
                 const struct cudabatch_attributes *attributes, const size_t *indices, size_t attribute_count,
                 void *stream, uintptr_t beyond)
{
    return runtime_batch8(dsts, srcs, sizes, count, attributes, indices, attribute_count, stream, beyond);
}

static int call_copy(void *dst, const void *src, size_t size, int kind, void *stream)
{
    return runtime_copy(dst, src, size, kind, stream);
}

static int call_last_error(void)
{
    return runtime_last_error();
}

static int find_by_linker(struct specimen_functions *found)
{
    int version = 0;
    if (runtime_copy == NULL || runtime_version == NULL || runtime_last_error == NULL)
        return CUDABATCH_SUCCESS;
    found->copy = call_copy;
    found->last_error = call_last_error;
    if (runtime_batch9 == NULL || runtime_version(&version) != CUDABATCH_SUCCESS)
        return CUDABATCH_SUCCESS;
    found->parameters = version >= 13000 ? 8 : 9;
    found->batch = found->parameters == 8 ? (cudabatch_function)call8 : (cudabatch_function)call9;
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_by_linker;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
