/* Stream capture and graphs: the driver's, under the runtime's names. */
#include "api.h"
#include "forward.h"

int cudaStreamBeginCapture(void *stream, int mode)
{
    FORWARD(legacy, begin_capture, stream, mode);
}

int cudaStreamBeginCapture_ptsz(void *stream, int mode)
{
    FORWARD(per_thread, begin_capture, stream, mode);
}

int cudaStreamEndCapture(void *stream, void **graph)
{
    FORWARD(legacy, end_capture, stream, graph);
}

int cudaStreamEndCapture_ptsz(void *stream, void **graph)
{
    FORWARD(per_thread, end_capture, stream, graph);
}

int cudaStreamIsCapturing(void *stream, int *status)
{
    FORWARD(legacy, is_capturing, stream, status);
}

int cudaStreamIsCapturing_ptsz(void *stream, int *status)
{
    FORWARD(per_thread, is_capturing, stream, status);
}

int cudaStreamGetCaptureInfo(void *stream, int *status, uint64_t *id)
{
    FORWARD(legacy, capture_info, stream, status, id);
}

int cudaStreamGetCaptureInfo_ptsz(void *stream, int *status, uint64_t *id)
{
    FORWARD(per_thread, capture_info, stream, status, id);
}

int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    FORWARD(legacy, exchange_capture_mode, mode);
}

int cudaGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    FORWARD(legacy, graph_get_nodes, graph, nodes, count);
}

int cudaGraphDestroy(void *graph)
{
    FORWARD(legacy, graph_destroy, graph);
}

/* The form of 12.0 and newer; that of CUDA 11 had other parameters under this name. */
int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags)
{
    FORWARD(legacy, graph_instantiate, executable, graph, flags);
}

int cudaGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiate(executable, graph, flags);
}

int cudaGraphExecDestroy(void *executable)
{
    FORWARD(legacy, graph_exec_destroy, executable);
}

int cudaGraphLaunch(void *executable, void *stream)
{
    FORWARD(legacy, graph_launch, executable, stream);
}

int cudaGraphLaunch_ptsz(void *executable, void *stream)
{
    FORWARD(per_thread, graph_launch, executable, stream);
}
