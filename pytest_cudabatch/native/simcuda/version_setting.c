/* Reads and checks a version variable; see version_setting.h. */
#include "version_setting.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* A version is decimal digits and nothing else; 1000 * major + 10 * minor ends in 0. */
static bool parse_version(const char *text, int *version)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value > 99990 || value % 10 != 0)
        return false;
    *version = (int)value;
    return true;
}

int version_setting(const struct version_range *range)
{
    const char *text = getenv(range->variable);
    int version;
    if (text == NULL)
        return range->own;
    if (parse_version(text, &version) && version >= range->first && version <= range->last)
        return version;
    fprintf(stderr, "pytest-cudabatch: %s=%s is not a version that the %s can be: set it to %d ... %d, like %d\n",
            range->variable, text, range->file, range->first, range->last, range->own);
    return 0;
}
