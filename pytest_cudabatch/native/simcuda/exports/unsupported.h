/*
 * What the simulated libraries export, but do not simulate.
 *
 * Each such function is a weak symbol, so the library's own function of that name, where there is one, takes
 * its place at link time. It answers CUDA_NOT_SUPPORTED whatever it is given, and names itself on stderr the
 * first time.
 */
#ifndef CUDABATCH_UNSUPPORTED_H
#define CUDABATCH_UNSUPPORTED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "../abi.h"

/* Writes the line for the function `name` unless `told` is set, and sets it. Returns CUDA_NOT_SUPPORTED. */
int unsupported(const char *name, atomic_bool *told);

/* Defines the function; `result(code)` is what it does with its code before it returns it. */
#define UNSUPPORTED(name, result)                                                    \
    CUDA_API __attribute__((weak)) int name(void);                                   \
    int name(void)                                                                   \
    {                                                                                \
        static atomic_bool told;                                                     \
        return result(unsupported(#name, &told));                                    \
    }

#endif
