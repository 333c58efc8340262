/*
 * The driver's functions that are not simulated, and the names by which cuGetProcAddress gives them.
 *
 * A caller that looks a dozen functions up before it needs any of them, as torch does, gets them all.
 */
#include "../abi.h"
#include "../exports/unsupported.h"
#include "names.h"

#define AS_IT_IS(code) (code)
#define EXPORT(name) UNSUPPORTED(name, AS_IT_IS)
#include "../exports/libcuda.h"
#undef EXPORT

/* Under its plain name a function may have no per-thread twin here; the stubs of both would be the same. */
#define LOOKUP(name, since) {#name, since, (void (*)(void))name, (void (*)(void))name},
const struct named_function unsupported_functions[] = {
#include "../exports/libcuda_lookups.h"
    {NULL, 0, NULL, NULL},
};
#undef LOOKUP
