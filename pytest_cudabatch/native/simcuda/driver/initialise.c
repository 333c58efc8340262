/* cuInit and the version query. Both work before anything else; cuInit may be called again. */
#include <pthread.h>

#include "../engine/capture.h"
#include "../engine/faults.h"
#include "../engine/streams.h"
#include "../version_setting.h"
#include "api.h"
#include "state.h"

/* Which versions this file can report; the build sets them for each of its variants. */
static const struct version_range versions = {
    .file = "simulated libcuda of driver " SIM_VARIANT,
    .variable = "CUDABATCH_SIM_DRIVER",
    .own = SIM_DRIVER_OWN,
    .first = SIM_DRIVER_FIRST,
    .last = SIM_DRIVER_LAST,
};

/* Written once each, under pthread_once. */
static int version;
static int start_code = CUDA_NOT_INITIALIZED;

static void read_version(void)
{
    version = version_setting(&versions);
}

int driver_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_version);
    return version;
}

static void start(void)
{
    int code = driver_version() == 0 ? CUDA_INVALID_VALUE : engine_start();
    if (code == CUDA_OK)
        code = streams_start();
    capture_start(driver_version());
    __atomic_store_n(&start_code, code, __ATOMIC_RELEASE);
}

int cuInit(unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (flags != 0)
        return CUDA_INVALID_VALUE;
    if (engine_is_forked())
        return CUDA_NOT_INITIALIZED;
    pthread_once(&once, start);
    return __atomic_load_n(&start_code, __ATOMIC_ACQUIRE);
}

int driver_ready(void)
{
    if (__atomic_load_n(&start_code, __ATOMIC_ACQUIRE) != CUDA_OK || engine_is_forked())
        return CUDA_NOT_INITIALIZED;
    return fault_lost_context();
}

int cuDriverGetVersion(int *answer)
{
    if (answer == NULL || driver_version() == 0)
        return CUDA_INVALID_VALUE;
    *answer = driver_version();
    return CUDA_OK;
}

/* A real libcudart asks for private tables and gives up without them, with CUDA_NOT_SUPPORTED. */
int cuGetExportTable(const void **table, const void *uuid)
{
    if (table == NULL || uuid == NULL)
        return CUDA_INVALID_VALUE;
    *table = NULL;
    return CUDA_NOT_SUPPORTED;
}
