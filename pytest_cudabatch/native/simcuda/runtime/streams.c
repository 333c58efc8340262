/* Streams: the driver's, under the runtime's names. */
#include "api.h"
#include "forward.h"

int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    FORWARD(legacy, stream_create, stream, flags, priority);
}

int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, STREAM_PRIORITY_LOWEST);
}

int cudaStreamCreate(void **stream)
{
    return cudaStreamCreateWithPriority(stream, 0, STREAM_PRIORITY_LOWEST);
}

int cudaStreamDestroy(void *stream)
{
    FORWARD(legacy, stream_destroy, stream);
}

int cudaStreamSynchronize(void *stream)
{
    FORWARD(legacy, stream_synchronize, stream);
}

int cudaStreamSynchronize_ptsz(void *stream)
{
    FORWARD(per_thread, stream_synchronize, stream);
}

int cudaStreamQuery(void *stream)
{
    FORWARD(legacy, stream_query, stream);
}

int cudaStreamQuery_ptsz(void *stream)
{
    FORWARD(per_thread, stream_query, stream);
}

int cudaStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    FORWARD(legacy, stream_wait_event, stream, event, flags);
}

int cudaStreamWaitEvent_ptsz(void *stream, void *event, unsigned flags)
{
    FORWARD(per_thread, stream_wait_event, stream, event, flags);
}

int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *argument)
{
    FORWARD(legacy, launch_host_function, stream, function, argument);
}

int cudaLaunchHostFunc_ptsz(void *stream, void (*function)(void *), void *argument)
{
    FORWARD(per_thread, launch_host_function, stream, function, argument);
}
