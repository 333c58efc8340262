/* The runtime's 3D batch function: five parameters in a 12.x libcudart, four in a 13.x one, none in 12.6. */
#include "api.h"
#include "forward.h"

#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH
#if SIM_RUNTIME_OWN < FIRST_VERSION_WITHOUT_FAIL_INDEX

int cudaMemcpy3DBatchAsync(BATCH_3D_PARAMETERS, size_t *fail_index, unsigned long long flags, void *stream)
{
    FORWARD(legacy, batch_3d_5, count, operations, fail_index, flags, stream);
}

int cudaMemcpy3DBatchAsync_ptsz(BATCH_3D_PARAMETERS, size_t *fail_index, unsigned long long flags, void *stream)
{
    FORWARD(per_thread, batch_3d_5, count, operations, fail_index, flags, stream);
}

#else

int cudaMemcpy3DBatchAsync(BATCH_3D_PARAMETERS, unsigned long long flags, void *stream)
{
    FORWARD(legacy, batch_3d_4, count, operations, flags, stream);
}

int cudaMemcpy3DBatchAsync_ptsz(BATCH_3D_PARAMETERS, unsigned long long flags, void *stream)
{
    FORWARD(per_thread, batch_3d_4, count, operations, flags, stream);
}

#endif
#endif
