/* Implements capabilities.h. All of it runs while the process has one thread, but for the reports. */
#define _GNU_SOURCE /* link.h keeps the audit interface behind it */
#include "capabilities.h"

#include <stdatomic.h>
#include <stddef.h>

#include "elf_image.h"
#include "evidence.h"
#include "memory.h"
#include "objects.h"
#include "relocations.h"
#include "tables.h"

/* Of the dynamic linker: data that the C library points to, and a function that nothing asks dlsym for. */
static const char relocated_symbol[] = "_rtld_global_ro", asked_symbol[] = "__tls_get_addr";

/* Set once while the program's own libraries are opened, before any other thread. */
static const struct link_map *linker, *c_library;
static void *(*c_library_dlsym)(void *handle, const char *symbol);
static bool expects_relocation;

/* Of enum evidence_capability; any thread sets. */
static _Atomic uint32_t reported;

static void note(uint32_t capability)
{
    atomic_fetch_or_explicit(&reported, capability, memory_order_relaxed);
    tables_note_capability(capability, 0);
}

bool capabilities_opened(const struct link_map *map)
{
    struct elf_symbols symbols;
    if (map->l_ld == NULL || !elf_symbols_read(map->l_ld, map->l_addr, &symbols))
        return false;
    if (linker == NULL && elf_find(&symbols, relocated_symbol) != NULL) {
        linker = map;
        return true;
    }
    if (!name_is_c_library(symbols.soname))
        return false;
    const Elf64_Sym *dlsym = elf_find(&symbols, "dlsym");
    if (dlsym != NULL && c_library_dlsym == NULL)
        c_library_dlsym = (void *(*)(void *, const char *))(map->l_addr + dlsym->st_value);
    if (c_library == NULL && text_begins(symbols.soname, "libc.so")) {
        c_library = map;
        expects_relocation = relocation_report(map, relocated_symbol);
    }
    return false;
}

bool capabilities_reported(const char *symbol, unsigned int flags)
{
    bool by_dlsym = flags & LA_SYMB_DLSYM;
    bool is_trial = text_equal(symbol, relocated_symbol);
    if (is_trial && !by_dlsym)
        note(CAPABILITY_NOW);
    else if (by_dlsym)
        note(CAPABILITY_DLSYM);
    else if ((flags & (LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT)) == 0)
        note(CAPABILITY_LAZY);
    return is_trial;
}

void capabilities_relocated(void)
{
    if (expects_relocation && !(atomic_load(&reported) & CAPABILITY_NOW))
        tables_note_capability(0, CAPABILITY_NOW);
}

void capabilities_try_dlsym(void)
{
    if (c_library_dlsym == NULL || linker == NULL || (atomic_load(&reported) & CAPABILITY_DLSYM))
        return;
    /* glibc's handles are its link maps. The linker's own is never closed. */
    c_library_dlsym((void *)linker, asked_symbol);
    if (!(atomic_load(&reported) & CAPABILITY_DLSYM))
        tables_note_capability(0, CAPABILITY_DLSYM);
}
