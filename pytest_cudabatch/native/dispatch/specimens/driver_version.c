/* Specimen driver-version. Its one fault: the driver's version decides the ABI, though the function is
 * the runtime's. Right as long as both have the same major version; a 12.8 or 12.9 runtime on a 13.x
 * driver gets eight parameters where it takes nine. Seen in sglang 21869, 23136 and 23183.
 */
#include "specimen.h"

static int find_by_driver(struct specimen_functions *found)
{
    int version = 0;
    cudabatch_get_version driver_version =
        (cudabatch_get_version)cudabatch_symbol(RTLD_DEFAULT, "cudaDriverGetVersion");
    specimen_find_single_copies(found);
    if (driver_version == NULL || driver_version(&version) != CUDABATCH_SUCCESS) {
        specimen_forget_error(found);
        return CUDABATCH_SUCCESS;
    }
    return specimen_find_by_name(found, version >= 13000 ? 8 : 9);
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_by_driver;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
