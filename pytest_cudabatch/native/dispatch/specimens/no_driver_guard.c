/* Specimen no-driver-guard. Its one fault: it counts on a driver that has the function. It hands a failed
 * query of the driver's version to its caller, and so the answers of a driver older than 12.8 (36), or of
 * none (35), instead of copying one by one. sgl-kernel's mend of its batch call brought such a guard.
 */
#include "specimen.h"

static int find_with_driver_version(struct specimen_functions *found)
{
    int version = 0; /* right or not, nobody looks at it: the guard that is missing */
    cudabatch_get_version driver_version =
        (cudabatch_get_version)cudabatch_symbol(RTLD_DEFAULT, "cudaDriverGetVersion");
    int code = specimen_find_in_owner(found);
    if (code == CUDABATCH_SUCCESS && driver_version != NULL)
        code = driver_version(&version);
    if (code != CUDABATCH_SUCCESS)
        specimen_forget_error(found);
    return code;
}

static int is_unavailable_on_any_driver(int code)
{
    return code != CUDABATCH_NEEDS_NEWER_DRIVER && code != CUDABATCH_NO_DRIVER && cudabatch_is_unavailable(code);
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.find = find_with_driver_version;
    steps.is_unavailable = is_unavailable_on_any_driver;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
