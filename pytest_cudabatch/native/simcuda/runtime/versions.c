/* Version queries and look-ups of driver functions. */
#include "api.h"
#include "forward.h"

int cudaRuntimeGetVersion(int *version)
{
    if (version == NULL || runtime_version() == 0)
        return record(CUDA_INVALID_VALUE);
    *version = runtime_version();
    return CUDA_OK;
}

/* Without a driver this succeeds with 0. */
int cudaDriverGetVersion(int *version)
{
    if (version == NULL)
        return record(CUDA_INVALID_VALUE);
    *version = driver_link()->version;
    return CUDA_OK;
}

/* A name that the driver does not know is success and NULL; only the status says why (measured). */
static int look_up(const char *name, void **function, int version, uint64_t flags, int *status)
{
    const struct driver *driver;
    int code = runtime_ready(&driver);
    if (code != CUDA_OK)
        return record(code);
    return record(driver->get_proc_address(name, function, version, flags, status));
}

static uint64_t flags_of_twin(uint64_t flags)
{
    return flags == LOOKUP_DEFAULT ? LOOKUP_PER_THREAD_STREAM : flags;
}

/* Without a version the runtime's own is asked for, so this fails on an older driver of the same major. */
int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *status)
{
    return look_up(name, function, runtime_version(), flags, status);
}

int cudaGetDriverEntryPoint_ptsz(const char *name, void **function, unsigned long long flags, int *status)
{
    return look_up(name, function, runtime_version(), flags_of_twin(flags), status);
}

int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                     int *status)
{
    return look_up(name, function, (int)version, flags, status);
}

int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **function, unsigned version,
                                          unsigned long long flags, int *status)
{
    return look_up(name, function, (int)version, flags_of_twin(flags), status);
}
