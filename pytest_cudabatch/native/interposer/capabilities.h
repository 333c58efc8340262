/*
 * What the dynamic linker reports in this process, tried and not looked up by version: bindings while objects
 * are relocated, by a pointer of the C library into the linker's own data, which every libc has; dlsym, by a
 * call of it. A lazy PLT is not tried: the first that is used shows it.
 */
#ifndef CUDABATCH_CAPABILITIES_H
#define CUDABATCH_CAPABILITIES_H

#include <link.h>
#include <stdbool.h>

/* Call when an object has been mapped. True where its symbols' bindings are to be reported for our trials. */
bool capabilities_opened(const struct link_map *map);

/* Call at each report of a binding. True where it is one of our trials and nobody else's. */
bool capabilities_reported(const char *symbol, unsigned int flags);

/* Call when the program and the libraries that it is linked with have been relocated. */
void capabilities_relocated(void);

/* Call when the C library works. */
void capabilities_try_dlsym(void);

#endif
