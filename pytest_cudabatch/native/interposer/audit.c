/*
 * The interface to the dynamic linker (rtld-audit(7)): the only functions that it calls, and the only way
 * in. They run under its lock, some before the program's libc works.
 */
#define _GNU_SOURCE /* link.h keeps the audit interface behind it */
#include <link.h>
#include <stdbool.h>

#include "capabilities.h"
#include "elf_image.h"
#include "evidence.h"
#include "execs.h"
#include "functions.h"
#include "injections.h"
#include "memory_functions.h"
#include "objects.h"
#include "processes.h"
#include "relocations.h"
#include "slot.h"
#include "stubs.h"
#include "tables.h"

#define EXPORT __attribute__((visibility("default")))

/* Without an evidence file the answer 0 makes the linker unload the library and go on without it. */
EXPORT unsigned int la_version(unsigned int version)
{
    if (!slot_open_file())
        return 0;
    if (slot_is_self_claimed())
        process_started();
    return version;
}

/* Set when the program and its libraries have been relocated, by the only thread then. Before, what a
 * relocation is to fill may hold anything. */
static bool started;

static bool defines_watched(const struct link_map *map)
{
    struct elf_symbols symbols;
    if (map->l_ld == NULL || !elf_symbols_read(map->l_ld, map->l_addr, &symbols))
        return false;
    bool is_c_library = name_is_c_library(symbols.soname);
    for (int i = 0; watched_functions[i].name != NULL; i++)
        if (!(is_c_library && watched_functions[i].kind == SYMBOL_LOOKUP) &&
            elf_find(&symbols, watched_functions[i].name) != NULL)
            return true;
    return false;
}

/* A binding is reported where the caller has BINDFROM and the definer BINDTO; so BINDTO only where there is
 * something to watch, which keeps some ten thousand bindings of a large program free of us. */
EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    (void)namespace;
    *cookie = (uintptr_t)map;
    objects_forget((uint64_t)map->l_ld);
    relocations_opened(map);
    bool is_trial = capabilities_opened(map);
    if (is_trial || (slot_is_self_claimed() && execs_defined_by(map)))
        return LA_FLG_BINDFROM | LA_FLG_BINDTO;
    if (!defines_watched(map))
        return LA_FLG_BINDFROM;
    object_at((uint64_t)map->l_ld); /* every CUDA library is named in the evidence, called or not */
    return LA_FLG_BINDFROM | LA_FLG_BINDTO;
}

EXPORT unsigned int la_objclose(uintptr_t *cookie)
{
    const struct link_map *map = (const struct link_map *)*cookie;
    relocations_closed(map);
    objects_forget((uint64_t)map->l_ld);
    return 0;
}

/* At the start this comes after relocation and before any constructor; at a dlopen, before relocation. */
EXPORT void la_activity(uintptr_t *cookie, unsigned int flag)
{
    (void)cookie;
    if (flag != LA_ACT_CONSISTENT)
        return;
    started = true;
    capabilities_relocated();
    relocations_settle();
}

/* Comes when the libraries' constructors have run and the program's have not. */
EXPORT void la_preinit(uintptr_t *cookie)
{
    (void)cookie;
    capabilities_try_dlsym();
}

static void record_binding(uint16_t function, const struct link_map *caller, uint64_t address,
                           enum evidence_via via)
{
    struct evidence_binding binding = {
        .function = function,
        .caller = object_at((uint64_t)caller->l_ld),
        .callee = object_at(address),
        .via = via,
    };
    binding.callee_offset = object_offset(binding.callee, address);
    tables_add(BINDINGS, &binding.entry);
}

/* What dlsym answers: a stub, or by a rule 0, which leaves no dlerror: for the dynamic linker nothing failed. */
static uint64_t dlsym_answer(uint16_t function, const struct link_map *caller, uint64_t found)
{
    struct dlsym_answer answer = {function, found, EVIDENCE_VIA_DLSYM};
    if (watched_functions[function].kind == BATCH_COPY)
        injection_into_dlsym((uint64_t)caller->l_ld, &answer);
    if (stub_at(answer.address) != NULL)
        return answer.address;
    record_binding(answer.function, caller, answer.address != 0 ? answer.address : found, answer.via);
    return answer.address != 0 ? stub_for(answer.function, answer.address) : 0;
}

static uint64_t bind(uint16_t function, const struct link_map *map, uint64_t address, bool by_dlsym)
{
    if (map == NULL) /* the linker keeps no cookie for us: a layer's dlsym, called by a stub, has jumped there */
        return stub_for(function, address); /* and symbol_lookups.c will record it */
    if (by_dlsym)
        return dlsym_answer(function, map, address);
    if (stub_at(address) != NULL)
        return address;
    bool is_pointer = relocation_reported(map, function);
    record_binding(function, map, address, is_pointer ? EVIDENCE_VIA_RELOCATION : EVIDENCE_VIA_PLT);
    return stub_for(function, address);
}

/* What a recording watches besides, and what is no part of the evidence. */
static uint64_t recorded_symbol(const char *name, uint64_t address, const struct link_map *definer)
{
    uint16_t function = memory_function_named(name);
    if (function == NOT_WATCHED)
        return exec_watched(name, address, definer);
    return stub_at(address) != NULL ? address : stub_for(function, address);
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *caller, uintptr_t *definer,
                              unsigned int *flags, const char *name)
{
    (void)index;
    slot_here(); /* any binding is an occasion to notice a claim */
    if (started)
        relocations_settle();
    if (capabilities_reported(name, *flags))
        return symbol->st_value;
    uint16_t function = function_named(name);
    if (function == NOT_WATCHED)
        return slot_is_self_claimed() ? recorded_symbol(name, symbol->st_value, (const struct link_map *)*definer)
                                      : symbol->st_value;
    if (watched_functions[function].kind == SYMBOL_LOOKUP && object_is_c_library(object_at(symbol->st_value)))
        return symbol->st_value;
    return bind(function, (const struct link_map *)*caller, symbol->st_value, *flags & LA_SYMB_DLSYM);
}
