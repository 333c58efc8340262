/*
 * The names that cuGetProcAddress knows.
 */
#ifndef CUDABATCH_DRIVER_NAMES_H
#define CUDABATCH_DRIVER_NAMES_H

typedef void (*any_function)(void);

/* One ABI of a function, from the CUDA version that introduced it on. */
struct named_function {
    const char *name;        /* without suffix, as cuGetProcAddress is asked */
    int since;               /* source: cudaTypedefs.h */
    any_function legacy;
    any_function per_thread; /* NULL where there is no twin */
};

/* Ends with an entry whose name is NULL; the ABIs of one name follow each other, oldest first. */
extern const struct named_function named_functions[];

/* The same of the functions that are not simulated; a name of the other table is to be ignored here. */
extern const struct named_function unsupported_functions[];

#endif
