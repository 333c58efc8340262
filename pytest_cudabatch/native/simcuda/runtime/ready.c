/* The runtime's own version, and what each of its calls needs first; see driver_link.h. */
#include <pthread.h>
#include <stdbool.h>

#include "../version_setting.h"
#include "driver_link.h"

/* Which versions this file can report; the build sets them for each of its variants. */
static const struct version_range versions = {
    .file = "simulated libcudart of runtime " SIM_VARIANT,
    .variable = SIM_RUNTIME_VARIABLE,
    .own = SIM_RUNTIME_OWN,
    .first = SIM_RUNTIME_FIRST,
    .last = SIM_RUNTIME_LAST,
};

/* Written under pthread_once. */
static int version;

enum { MOST_DEVICES = 8 };

/* Guards `contexts`, the retained primary ones; NULL before the first use and after a reset. */
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static void *contexts[MOST_DEVICES];

/* What cudaSetDevice said in this thread. */
static _Thread_local int chosen;

static void read_version(void)
{
    version = version_setting(&versions);
}

int runtime_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_version);
    return version;
}

/* Minor-version compatibility: any driver of the runtime's major version, or a newer one, will do. */
static bool driver_is_sufficient(const struct driver *driver)
{
    return driver->version / 1000 >= SIM_RUNTIME_OWN / 1000;
}

static int retain_context(const struct driver *driver, int device, void **retained)
{
    int code = CUDA_OK;
    pthread_mutex_lock(&context_lock);
    if (contexts[device] == NULL)
        code = driver->legacy.context_retain(&contexts[device], device);
    *retained = contexts[device];
    pthread_mutex_unlock(&context_lock);
    return code;
}

void runtime_forget_context(int device)
{
    pthread_mutex_lock(&context_lock);
    contexts[device] = NULL;
    pthread_mutex_unlock(&context_lock);
}

/* A context that the program has made current by the driver stays so. */
static int make_context_current(const struct driver *driver)
{
    void *current, *primary;
    int code = retain_context(driver, chosen, &primary);
    if (code == CUDA_OK)
        code = driver->legacy.context_get_current(&current);
    if (code == CUDA_OK && current == NULL)
        code = driver->legacy.context_set_current(primary);
    return code;
}

int runtime_use_device(const struct driver *driver, int device)
{
    void *primary;
    int count;
    int code = driver->legacy.device_get_count(&count);
    if (code == CUDA_OK && (device < 0 || device >= count))
        code = CUDA_INVALID_DEVICE;
    if (code == CUDA_OK)
        code = retain_context(driver, device, &primary);
    if (code == CUDA_OK)
        code = driver->legacy.context_set_current(primary);
    if (code == CUDA_OK)
        chosen = device;
    return code;
}

int runtime_ready(const struct driver **driver)
{
    *driver = driver_link();
    if (runtime_version() == 0)
        return CUDA_INVALID_VALUE;
    if (!driver_is_sufficient(*driver))
        return CUDA_INSUFFICIENT_DRIVER;
    int code = (*driver)->legacy.init(0);
    return code == CUDA_OK ? make_context_current(*driver) : code;
}
