/*
 * cuGetProcAddress in its two forms: with four parameters (11.3) and with a status as fifth (12.0).
 *
 * A version above the driver's is CUDA_INVALID_VALUE. An unknown name, or one that is newer than the version
 * asked for, is success and NULL, and only the status says why (both measured, rows lookup-* of
 * matrix/contract.toml). Assumed: the form without a status does the same.
 */
#include <stdbool.h>
#include <string.h>

#include "api.h"
#include "names.h"
#include "state.h"

/* The newest ABI of `name` in `table` that is not newer than `version`; says whether it has the name at all. */
static const struct named_function *find_in(const struct named_function *table, const char *name, int version,
                                            int *status)
{
    const struct named_function *found = NULL;
    *status = LOOKUP_SYMBOL_NOT_FOUND;
    for (const struct named_function *entry = table; entry->name != NULL; entry++) {
        if (strcmp(entry->name, name) != 0)
            continue;
        if (entry->since <= version)
            found = entry;
        else if (found == NULL)
            *status = LOOKUP_VERSION_NOT_SUFFICIENT;
    }
    if (found != NULL)
        *status = LOOKUP_FOUND;
    return found;
}

static const struct named_function *find(const char *name, int version, int *status)
{
    const struct named_function *found = find_in(named_functions, name, version, status);
    if (*status == LOOKUP_SYMBOL_NOT_FOUND)
        found = find_in(unsupported_functions, name, version, status);
    return found;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    int found_status;
    if (name == NULL || function == NULL || flags > LOOKUP_PER_THREAD_STREAM)
        return CUDA_INVALID_VALUE;
    *function = NULL;
    const struct named_function *found = find(name, version, &found_status);
    if (version > driver_version()) /* also where driver_version is 0, a refused setting */
        found_status = LOOKUP_VERSION_NOT_SUFFICIENT;
    if (status != NULL)
        *status = found_status;
    if (version > driver_version())
        return CUDA_INVALID_VALUE;
    if (found == NULL)
        return CUDA_OK;
    bool per_thread = flags == LOOKUP_PER_THREAD_STREAM && found->per_thread != NULL;
    *function = (void *)(per_thread ? found->per_thread : found->legacy);
    return CUDA_OK;
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
