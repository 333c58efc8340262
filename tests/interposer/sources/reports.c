/* An audit library that replaces nothing and only says, in the descriptor REPORT_TO, what the dynamic linker
 * reports by itself of one function. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <unistd.h>

enum { REPORT_TO = 2 };

static const char watched[] = "cudaMemcpyBatchAsync";

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    (void)map, (void)namespace, (void)cookie;
    return LA_FLG_BINDFROM | LA_FLG_BINDTO;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *caller, uintptr_t *definer, unsigned *flags,
                       const char *name)
{
    (void)index, (void)caller, (void)definer, (void)flags;
    if (strcmp(name, watched) == 0 && write(REPORT_TO, watched, sizeof watched - 1) < 0)
        return 0;
    return symbol->st_value;
}
