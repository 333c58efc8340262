/*
 * Copying and comparing without libc. memcpy, memset and memcmp exist under their usual names because the
 * compiler calls them for struct copies even in freestanding code.
 */
#ifndef CUDABATCH_MEMORY_H
#define CUDABATCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *left, const void *right, size_t size);

bool text_equal(const char *left, const char *right);

bool text_begins(const char *text, const char *with);

/* Copies at most `size` bytes of a terminated text and fills the rest with zeros; unterminated when full. */
void text_copy(char *to, size_t size, const char *from);

#endif
