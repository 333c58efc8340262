/*
 * The runtime's batch function: nine parameters in a 12.x libcudart, eight in a 13.x one, none in 12.6.
 *
 * It only forwards. Without a sufficient driver it answers 35, and where the driver lacks the function 36;
 * both before it touches an argument, so that a wrong-ABI call shows nothing there, as with a real one.
 */
#include "api.h"
#include "forward.h"

#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITH_BATCH

#define BATCH_ARGUMENTS destinations, sources, sizes, count, attributes, first_copies, attribute_count

#if SIM_RUNTIME_OWN < FIRST_VERSION_WITHOUT_FAIL_INDEX

int cudaMemcpyBatchAsync(BATCH_PARAMETERS, size_t *fail_index, void *stream)
{
    FORWARD(legacy, batch_9, BATCH_ARGUMENTS, fail_index, stream);
}

int cudaMemcpyBatchAsync_ptsz(BATCH_PARAMETERS, size_t *fail_index, void *stream)
{
    FORWARD(per_thread, batch_9, BATCH_ARGUMENTS, fail_index, stream);
}

#else

int cudaMemcpyBatchAsync(BATCH_PARAMETERS, void *stream)
{
    FORWARD(legacy, batch_8, BATCH_ARGUMENTS, stream);
}

int cudaMemcpyBatchAsync_ptsz(BATCH_PARAMETERS, void *stream)
{
    FORWARD(per_thread, batch_8, BATCH_ARGUMENTS, stream);
}

/* One copy, since 13.2; a driver that is older lacks it. */
int cudaMemcpyWithAttributesAsync(void *destination, const void *source, size_t size,
                                  const struct copy_attributes *attributes, void *stream)
{
    FORWARD(legacy, copy_with_attributes, (cuda_address)destination, (cuda_address)source, size, attributes, stream);
}

int cudaMemcpyWithAttributesAsync_ptsz(void *destination, const void *source, size_t size,
                                       const struct copy_attributes *attributes, void *stream)
{
    FORWARD(per_thread, copy_with_attributes, (cuda_address)destination, (cuda_address)source, size, attributes, stream);
}

#endif
#endif
