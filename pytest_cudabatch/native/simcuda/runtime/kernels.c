/* Registration and launches; see kernels.h. */
#include "kernels.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "forward.h"

/* A kernel's stub in the host code, and its name on the device; both live as long as their library. */
struct kernel {
    const void *host_function;
    const char *name;
    bool refused; /* named on stderr once */
};

/* Guards what follows. Registration runs in constructors of libraries, one after the other, 20,000 and more. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;
static size_t count, capacity;

/* What a fat binary's handle points to; nobody looks into it. */
static void *registered;

/* Of the calling thread: what the next __cudaPopCallConfiguration takes back. */
static _Thread_local struct {
    struct dimensions grid, block;
    size_t shared_size;
    void *stream;
} pushed;

void **__cudaRegisterFatBinary(void *image)
{
    (void)image;
    return &registered;
}

void __cudaRegisterFatBinaryEnd(void **image)
{
    (void)image;
}

void __cudaUnregisterFatBinary(void **image)
{
    (void)image;
}

static bool has_room(void)
{
    if (count < capacity)
        return true;
    size_t wanted = capacity == 0 ? 1024 : 2 * capacity;
    struct kernel *larger = realloc(kernels, wanted * sizeof *kernels);
    if (larger == NULL)
        return false;
    kernels = larger;
    capacity = wanted;
    return true;
}

void __cudaRegisterFunction(void **image, const char *host_function, char *device_function, const char *device_name,
                            int thread_limit, void *thread, void *block, void *block_dimensions,
                            void *grid_dimensions, int *warp_size)
{
    (void)image, (void)device_function, (void)thread_limit, (void)thread, (void)block;
    (void)block_dimensions, (void)grid_dimensions, (void)warp_size;
    pthread_mutex_lock(&lock);
    if (has_room()) /* without: a launch is refused all the same, nameless */
        kernels[count++] = (struct kernel){.host_function = host_function, .name = device_name};
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterVar(void **image, char *host_variable, char *device_address, const char *device_name,
                       int is_external, size_t size, int is_constant, int is_global)
{
    (void)image, (void)host_variable, (void)device_address, (void)device_name;
    (void)is_external, (void)size, (void)is_constant, (void)is_global;
}

void __cudaRegisterManagedVar(void **image, void **host_variable, char *device_address, const char *device_name,
                              int is_external, size_t size, int is_constant, int is_global)
{
    (void)image, (void)host_variable, (void)device_address, (void)device_name;
    (void)is_external, (void)size, (void)is_constant, (void)is_global;
}

void __cudaRegisterHostVar(void **image, const char *device_name, char *host_variable, size_t size)
{
    (void)image, (void)device_name, (void)host_variable, (void)size;
}

char __cudaInitModule(void **image)
{
    (void)image;
    return 1;
}

unsigned __cudaPushCallConfiguration(struct dimensions grid, struct dimensions block, size_t shared_size, void *stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared_size = shared_size;
    pushed.stream = stream;
    return 0;
}

int __cudaPopCallConfiguration(struct dimensions *grid, struct dimensions *block, size_t *shared_size, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_size = pushed.shared_size;
    *(void **)stream = pushed.stream;
    return CUDA_OK;
}

/* A kernel's handle is its host function, so that every way of launching it comes to one name. */
int __cudaGetKernel(void **kernel, const void *host_function)
{
    *kernel = (void *)host_function;
    return CUDA_OK;
}

/* Says once for each kernel that it was not launched. */
static int refuse(const void *host_function)
{
    const char *name = "a kernel that was not registered";
    bool told = false;
    char line[512];
    pthread_mutex_lock(&lock);
    for (size_t index = 0; index < count; index++)
        if (kernels[index].host_function == host_function) {
            name = kernels[index].name;
            told = kernels[index].refused;
            kernels[index].refused = true;
            break;
        }
    pthread_mutex_unlock(&lock);
    int length = told ? 0 : snprintf(line, sizeof line, "simulated CUDA: cannot launch %.400s (simulated device)\n", name);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return record(CUDA_NOT_SUPPORTED); /* nobody listens; the answer is the same */
    return record(CUDA_NOT_SUPPORTED);
}

#define LAUNCH(name, function_type)                                                                            \
    int name(function_type function, struct dimensions grid, struct dimensions block, void **arguments,        \
             size_t shared_size, void *stream)                                                                 \
    {                                                                                                          \
        (void)grid, (void)block, (void)arguments, (void)shared_size, (void)stream;                             \
        return refuse(function);                                                                               \
    }

LAUNCH(__cudaLaunchKernel, void *)
LAUNCH(__cudaLaunchKernel_ptsz, void *)
LAUNCH(cudaLaunchKernel, const void *)
LAUNCH(cudaLaunchKernel_ptsz, const void *)
LAUNCH(cudaLaunchCooperativeKernel, const void *)
LAUNCH(cudaLaunchCooperativeKernel_ptsz, const void *)

int cudaLaunchKernelExC(const struct launch_configuration *configuration, const void *function, void **arguments)
{
    (void)configuration, (void)arguments;
    return refuse(function);
}

int cudaLaunchKernelExC_ptsz(const struct launch_configuration *configuration, const void *function,
                             void **arguments)
{
    (void)configuration, (void)arguments;
    return refuse(function);
}
