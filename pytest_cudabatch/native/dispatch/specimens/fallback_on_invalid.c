/* Specimen fallback-on-invalid. Its one fault: it takes "invalid value" for "not available" and copies one by
 * one, so that a wrong argument, its own or its caller's, never shows.
 */
#include "specimen.h"

static int is_unavailable_or_invalid(int code)
{
    const int invalid_value = 1; /* cudaErrorInvalidValue */
    return code == invalid_value || cudabatch_is_unavailable(code);
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    struct specimen_steps steps = specimen_right_steps;
    steps.is_unavailable = is_unavailable_or_invalid;
    return specimen_copy(&steps, dsts, srcs, sizes, count, stream);
}
