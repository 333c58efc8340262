/* Opens libcuda.so.1 and asks it for each function; see driver_link.h. */
#define _GNU_SOURCE
#include "driver_link.h"

#include <dlfcn.h>
#include <pthread.h>

/* From 13.1 on a libcudart does not ask for what is newer than the driver; 13.0 asks and is refused. */
enum { FIRST_VERSION_THAT_SKIPS = 13010 };

struct request {
    const char *name;
    int version;
    size_t offset; /* of the member in struct driver_functions */
};

#define REQUEST(member, name, version, parameters) {name, version, offsetof(struct driver_functions, member)},
static const struct request requests[] = {DRIVER_FUNCTIONS(REQUEST)};
#undef REQUEST

/* Written under pthread_once, read-only after that. */
static struct driver linked;

static void ask(struct driver_functions *functions, const struct request *request, uint64_t flags)
{
    void *function = NULL;
    if (linked.get_proc_address(request->name, &function, request->version, flags, NULL) != CUDA_OK)
        function = NULL;
    *(void **)((char *)functions + request->offset) = function;
}

static void ask_for_all(void)
{
    for (size_t index = 0; index < sizeof requests / sizeof *requests; index++) {
        if (runtime_version() >= FIRST_VERSION_THAT_SKIPS && requests[index].version > linked.version)
            continue;
        ask(&linked.legacy, &requests[index], LOOKUP_DEFAULT);
        ask(&linked.per_thread, &requests[index], LOOKUP_PER_THREAD_STREAM);
    }
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    int (*get_version)(int *) = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
    linked.get_proc_address =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(library, "cuGetProcAddress_v2");
    if (get_version == NULL || linked.get_proc_address == NULL || get_version(&linked.version) != CUDA_OK)
        linked.version = 0;
    else
        ask_for_all();
}

const struct driver *driver_link(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    return &linked;
}
