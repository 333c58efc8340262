/* Code under test that asks for a version, or for the batch function, by name. Compiled without tail calls,
 * so that it is the caller and not whoever called it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int ask_version(const char *function, int *version)
{
    int (*query)(int *) = dlsym(RTLD_DEFAULT, function);
    return query(version);
}

void *ask_dlsym(const char *function) { return dlsym(RTLD_DEFAULT, function); }

void *ask_dlvsym(const char *function, const char *version) { return dlvsym(RTLD_DEFAULT, function, version); }
