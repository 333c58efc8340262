/* Events: the driver's, under the runtime's names. */
#include "api.h"
#include "forward.h"

int cudaEventCreateWithFlags(void **event, unsigned flags)
{
    FORWARD(legacy, event_create, event, flags);
}

int cudaEventCreate(void **event)
{
    return cudaEventCreateWithFlags(event, 0);
}

int cudaEventDestroy(void *event)
{
    FORWARD(legacy, event_destroy, event);
}

int cudaEventQuery(void *event)
{
    FORWARD(legacy, event_query, event);
}

int cudaEventSynchronize(void *event)
{
    FORWARD(legacy, event_synchronize, event);
}

int cudaEventElapsedTime(float *milliseconds, void *start, void *end)
{
    FORWARD(legacy, event_elapsed_time, milliseconds, start, end);
}

int cudaEventRecord(void *event, void *stream)
{
    FORWARD(legacy, event_record, event, stream);
}

int cudaEventRecord_ptsz(void *event, void *stream)
{
    FORWARD(per_thread, event_record, event, stream);
}
