/* Implements memory.h with plain loops; the build forbids the compiler to turn them into library calls. */
#include "memory.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    char *target = to;
    const char *source = from;
    for (size_t i = 0; i < size; i++)
        target[i] = source[i];
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    char *target = to;
    for (size_t i = 0; i < size; i++)
        target[i] = (char)byte;
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *a = left;
    const unsigned char *b = right;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

bool text_equal(const char *left, const char *right)
{
    for (; *left == *right; left++, right++)
        if (*left == '\0')
            return true;
    return false;
}

bool text_begins(const char *text, const char *with)
{
    for (; *with != '\0'; text++, with++)
        if (*text != *with)
            return false;
    return true;
}

void text_copy(char *to, size_t size, const char *from)
{
    size_t i = 0;
    for (; i < size && from[i] != '\0'; i++)
        to[i] = from[i];
    for (; i < size; i++)
        to[i] = '\0';
}
