/*
 * Watching how a process starts programs, in a recording only: which file is to run as which process. This
 * library cannot be in a static program, for instance; its start is then all that is known of it.
 *
 * The program is given functions of ours in place of libc's: they leave a note and call the real ones. What
 * libc calls inside itself is not seen (system and popen run /bin/sh, which is itself watched), nor are raw
 * system calls, nor calls through pointers that relocations fill in (-fno-plt).
 */
#ifndef CUDABATCH_EXECS_H
#define CUDABATCH_EXECS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the object defines what is to be watched. */
bool execs_defined_by(const struct link_map *map);

/* The address to hand out for `real`, which `definer` has as `name`; `real` itself for all other functions. */
uint64_t exec_watched(const char *name, uint64_t real, const struct link_map *definer);

#endif
