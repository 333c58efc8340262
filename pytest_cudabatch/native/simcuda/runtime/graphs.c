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
