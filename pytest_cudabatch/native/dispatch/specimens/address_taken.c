/* Specimen address-taken: right, and calls through a constant table of addresses, which absolute relocations fill.
 * The dynamic linker's audit interface does not report those by itself.
 */
#include "runtime_symbols.h"

struct addresses {
    specimen_batch9 batch9;
    specimen_batch8 batch8;
    cudabatch_runtime_copy copy;
    cudabatch_last_error last_error;
    cudabatch_get_version version;
};

static const struct addresses taken = {
    runtime_batch9, runtime_batch8, runtime_copy, runtime_last_error, runtime_version,
};

/* Volatile, else the compiler knows the entries and reads the addresses from elsewhere. */
static const volatile struct addresses *const table = &taken;

static int find_in_table(struct specimen_functions *found)
{
    int version = 0;
    found->copy = table->copy;
    found->last_error = table->last_error;
    cudabatch_get_version get_version = table->version;
    if (table->batch9 == NULL || get_version == NULL || get_version(&version) != CUDABATCH_SUCCESS)
        return CUDABATCH_SUCCESS;
    found->parameters = version >= 13000 ? 8 : 9;
    found->batch = found->parameters == 8 ? (cudabatch_function)table->batch8 : (cudabatch_function)table->batch9;
    return CUDABATCH_SUCCESS;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_in_table;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
