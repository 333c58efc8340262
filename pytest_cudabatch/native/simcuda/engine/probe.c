/* Touches pageable memory in the caller's thread, so that a bad address faults in the call; see copies.h. */
#include "copies.h"

#include <unistd.h>

static cuda_address next_page(cuda_address address)
{
    cuda_address page = (cuda_address)sysconf(_SC_PAGESIZE);
    return (address / page + 1) * page;
}

void copy_probe_source(cuda_address source, size_t size)
{
    for (cuda_address at = source; at - source < size; at = next_page(at))
        *(const volatile char *)at;
}

void copy_probe_destination(cuda_address destination, size_t size)
{
    /* Writes back what is there, atomically: other threads may be writing beside it. */
    for (cuda_address at = destination; at - destination < size; at = next_page(at))
        __atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
}
