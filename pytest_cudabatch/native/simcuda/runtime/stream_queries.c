/* What a stream or an event is, beside its work: priority, flags, and the capture that it belongs to. */
#include "api.h"
#include "forward.h"

int cudaStreamGetPriority(void *stream, int *priority)
{
    FORWARD(legacy, stream_get_priority, stream, priority);
}

int cudaStreamGetPriority_ptsz(void *stream, int *priority)
{
    FORWARD(per_thread, stream_get_priority, stream, priority);
}

int cudaStreamGetFlags(void *stream, unsigned *flags)
{
    FORWARD(legacy, stream_get_flags, stream, flags);
}

int cudaStreamGetFlags_ptsz(void *stream, unsigned *flags)
{
    FORWARD(per_thread, stream_get_flags, stream, flags);
}

int cudaEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    FORWARD(legacy, event_record_with_flags, event, stream, flags);
}

int cudaEventRecordWithFlags_ptsz(void *event, void *stream, unsigned flags)
{
    FORWARD(per_thread, event_record_with_flags, event, stream, flags);
}
