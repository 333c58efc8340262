/* Specimen current-device. Its one fault: it copies on a stream of its own of whichever device is current in the
 * calling thread. Where that is not the device of the caller's stream, its event cannot be recorded there ("invalid
 * resource handle"), and it copies without waiting (CCCL 9615 is about the current device, too). On one and the
 * same device everything is in order.
 */
#include "specimen.h"

enum { DEVICES = 8, INVALID_HANDLE = 400 };

/* A stream and an event of each device, made when they are first wanted; specimens are called by one thread at a
 * time. */
static struct {
    void *stream, *event;
} own[DEVICES];

static struct {
    int (*get_device)(int *);
    int (*create_stream)(void **, unsigned);
    int (*create_event)(void **, unsigned);
    int (*record)(void *, void *);
    int (*wait)(void *, void *, unsigned);
} cuda;

static int find_functions(void)
{
    cuda.get_device = (int (*)(int *))cudabatch_symbol(RTLD_DEFAULT, "cudaGetDevice");
    cuda.create_stream = (int (*)(void **, unsigned))cudabatch_symbol(RTLD_DEFAULT, "cudaStreamCreateWithFlags");
    cuda.create_event = (int (*)(void **, unsigned))cudabatch_symbol(RTLD_DEFAULT, "cudaEventCreateWithFlags");
    cuda.record = (int (*)(void *, void *))cudabatch_symbol(RTLD_DEFAULT, "cudaEventRecord");
    cuda.wait = (int (*)(void *, void *, unsigned))cudabatch_symbol(RTLD_DEFAULT, "cudaStreamWaitEvent");
    return cuda.get_device && cuda.create_stream && cuda.create_event && cuda.record && cuda.wait;
}

/* Finds the current device and sees to it that it has a stream and an event. */
static int take_device(int *device)
{
    const unsigned non_blocking = 1, disable_timing = 2;
    int code = cuda.get_device(device);
    if (code == CUDABATCH_SUCCESS && *device >= DEVICES)
        return SPECIMEN_OUT_OF_MEMORY;
    if (code == CUDABATCH_SUCCESS && own[*device].event == NULL)
        code = cuda.create_event(&own[*device].event, disable_timing);
    if (code == CUDABATCH_SUCCESS && own[*device].stream == NULL)
        code = cuda.create_stream(&own[*device].stream, non_blocking);
    return code;
}

static int order(void *event, void *earlier, void *later)
{
    int code = cuda.record(event, earlier);
    return code == CUDABATCH_SUCCESS ? cuda.wait(later, event, 0) : code;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    int device;
    if ((uintptr_t)stream <= 2 || !find_functions())
        return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
    int code = take_device(&device);
    if (code == CUDABATCH_SUCCESS)
        code = order(own[device].event, stream, own[device].stream);
    if (code == INVALID_HANDLE) { /* the fault: this is no reason to go on */
        specimen_forget_error(&(struct specimen_functions){
            .last_error = (cudabatch_last_error)cudabatch_symbol(RTLD_DEFAULT, "cudaGetLastError")});
        code = CUDABATCH_SUCCESS;
    }
    if (code != CUDABATCH_SUCCESS)
        return code;
    code = specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, own[device].stream);
    int ordered = order(own[device].event, own[device].stream, stream);
    return code == CUDABATCH_SUCCESS ? ordered : code;
}
