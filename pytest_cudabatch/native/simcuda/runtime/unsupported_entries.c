/* The runtime's functions that are not simulated. Their code is also the thread's last error. */
#include "../abi.h"
#include "../exports/unsupported.h"
#include "forward.h"

#define EXPORT(name) UNSUPPORTED(name, record)
#if SIM_RUNTIME_OWN >= FIRST_VERSION_WITHOUT_FAIL_INDEX
#include "../exports/libcudart_13.h"
#else
#include "../exports/libcudart_12.h"
#endif
