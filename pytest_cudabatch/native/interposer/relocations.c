/* Implements relocations.h: a table of the places where an object keeps a pointer to a watched function. */
#define _GNU_SOURCE /* link.h */
#include "relocations.h"

#include <stdatomic.h>

#include "elf_image.h"
#include "evidence.h"
#include "functions.h"
#include "machine.h"
#include "maps.h"
#include "memory.h"
#include "objects.h"
#include "stubs.h"
#include "system_calls.h"
#include "tables.h"

enum { PLACES = 256, LARGEST_PAGE = 64 * 1024 };

enum place_state { PLACE_FREE, PLACE_TAKEN, PLACE_WAITING, PLACE_BUSY };

/* Written under the linker's lock, when an object is opened; settled by any thread that finds it waiting. */
static struct place {
    _Atomic uint32_t state; /* enum place_state */
    uint16_t function;
    uint16_t type;        /* of the relocation, as the object has it */
    _Atomic bool asked;   /* the linker was asked to report it, and has not yet */
    uint64_t address;
    uint64_t addend;      /* what the pointer holds beyond the function's address */
    uint64_t own;         /* the object's own definition of the function; 0: it has none */
    const struct link_map *map;
} places[PLACES];

static _Atomic uint32_t waiting;

static bool is_in_object(const struct link_map *map, uint64_t address)
{
    return object_at(address) == object_at((uint64_t)map->l_ld);
}

static void record(const struct place *place, uint64_t real, enum evidence_via via)
{
    struct evidence_binding binding = {
        .function = place->function,
        .caller = object_at((uint64_t)place->map->l_ld),
        .callee = real != 0 ? object_at(real) : EVIDENCE_NO_OBJECT,
        .via = via,
    };
    binding.callee_offset = real != 0 ? object_offset(binding.callee, real) : 0;
    tables_add(BINDINGS, &binding.entry);
}

struct pages {
    uint64_t start, size;
};

/* The smallest piece of the mapping around the address that is made of whole pages, whatever size they have. */
static struct pages pages_around(uint64_t address, const struct mapped_file *mapping)
{
    uint64_t start = address / LARGEST_PAGE * LARGEST_PAGE, end = start + LARGEST_PAGE;
    start = start > mapping->start ? start : mapping->start;
    end = end < mapping->end ? end : mapping->end;
    return (struct pages){start, end - start};
}

static bool protect(struct pages pages, long access)
{
    return !system_failed(system_call(SYS_mprotect, (long)pages.start, (long)pages.size, access, 0, 0, 0));
}

/* Stores an aligned word in memory that may be write-protected, as by RELRO, and leaves it as it was. */
static bool store(uint64_t *address, uint64_t word)
{
    struct mapped_file mapping;
    struct maps_reading reading;
    if (!maps_find((uint64_t)address, &mapping, &reading) || (mapping.executable && !mapping.writable))
        return false; /* a page of code must not lose its rights, not even for a moment */
    struct pages pages = pages_around((uint64_t)address, &mapping);
    if (!mapping.writable && !protect(pages, PROT_READ | PROT_WRITE))
        return false;
    __atomic_store_n(address, word, __ATOMIC_RELEASE);
    if (!mapping.writable)
        protect(pages, PROT_READ);
    return true;
}

static bool ask_for_report(Elf64_Rela *relocation)
{
    uint64_t info = ELF64_R_INFO(ELF64_R_SYM(relocation->r_info), RELOCATION_JUMP_SLOT);
    return store(&relocation->r_info, info);
}

static bool is_pointer(const Elf64_Rela *relocation)
{
    uint64_t type = ELF64_R_TYPE(relocation->r_info);
    return type == RELOCATION_TABLE || type == RELOCATION_DATA || type == RELOCATION_JUMP_SLOT;
}

static struct place *free_place(void)
{
    for (int i = 0; i < PLACES; i++) {
        uint32_t expected = PLACE_FREE;
        if (atomic_compare_exchange_strong(&places[i].state, &expected, PLACE_TAKEN))
            return &places[i];
    }
    tables_note_loss();
    return NULL;
}

/* What the linker knows an object by: its SONAME, else its file's name. */
static const char *link_map_name(const struct link_map *map, const struct elf_symbols *symbols)
{
    const char *name = map->l_name;
    if (symbols->soname[0] != '\0')
        return symbols->soname;
    for (const char *c = map->l_name; *c != '\0'; c++)
        if (*c == '/')
            name = c + 1;
    return name;
}

struct opened_object {
    const struct link_map *map;
    struct elf_symbols symbols;
    bool is_cuda;
};

static void consider(const struct opened_object *object, Elf64_Rela *relocation)
{
    const Elf64_Sym *symbol = &object->symbols.symbols[ELF64_R_SYM(relocation->r_info)];
    uint16_t function = function_named(object->symbols.strings + symbol->st_name);
    if (function == NOT_WATCHED)
        return;
    bool is_own = symbol->st_shndx != SHN_UNDEF;
    if (is_own && object->is_cuda)
        return; /* its own business: what it hands out is seen where it is handed out */
    if (relocation_is_embedded(ELF64_R_TYPE(relocation->r_info)))
        record(&(struct place){.function = function, .map = object->map}, 0, EVIDENCE_UNSEEN);
    struct place *place = is_pointer(relocation) ? free_place() : NULL;
    if (place == NULL)
        return;
    place->function = function;
    place->type = (uint16_t)ELF64_R_TYPE(relocation->r_info);
    place->address = object->map->l_addr + relocation->r_offset;
    place->addend = (uint64_t)relocation->r_addend;
    place->own = is_own ? object->map->l_addr + symbol->st_value : 0;
    place->map = object->map;
    bool asked = place->type != RELOCATION_JUMP_SLOT && place->addend == 0 && ask_for_report(relocation);
    atomic_store(&place->asked, asked);
    atomic_fetch_add(&waiting, 1);
    atomic_store_explicit(&place->state, PLACE_WAITING, memory_order_release);
}

static bool open_object(const struct link_map *map, struct opened_object *object)
{
    object->map = map;
    return map->l_ld != NULL && elf_symbols_read(map->l_ld, map->l_addr, &object->symbols);
}

void relocations_opened(const struct link_map *map)
{
    struct opened_object object;
    struct elf_relocations relocations;
    if (!open_object(map, &object))
        return;
    object.is_cuda = name_is_cuda(link_map_name(map, &object.symbols));
    elf_relocations_read(map->l_ld, map->l_addr, &relocations);
    for (uint64_t i = 0; i < relocations.count; i++)
        if (ELF64_R_SYM(relocations.table[i].r_info) != STN_UNDEF)
            consider(&object, &relocations.table[i]);
    for (uint64_t i = 0; i < relocations.plt_count; i++)
        consider(&object, &relocations.plt[i]);
}

bool relocation_report(const struct link_map *map, const char *symbol)
{
    struct opened_object object;
    struct elf_relocations relocations;
    if (!open_object(map, &object))
        return false;
    elf_relocations_read(map->l_ld, map->l_addr, &relocations);
    for (uint64_t i = 0; i < relocations.count; i++) {
        uint64_t info = relocations.table[i].r_info;
        const Elf64_Sym *named = &object.symbols.symbols[ELF64_R_SYM(info)];
        if (ELF64_R_TYPE(info) == RELOCATION_TABLE && text_equal(object.symbols.strings + named->st_name, symbol))
            return ask_for_report(&relocations.table[i]);
    }
    return false;
}

static void release(struct place *place)
{
    atomic_fetch_sub(&waiting, 1);
    atomic_store_explicit(&place->state, PLACE_FREE, memory_order_release);
}

void relocations_closed(const struct link_map *map)
{
    for (int i = 0; i < PLACES; i++) {
        uint32_t expected = PLACE_WAITING;
        if (places[i].map == map && atomic_compare_exchange_strong(&places[i].state, &expected, PLACE_BUSY))
            release(&places[i]);
    }
}

bool relocation_reported(const struct link_map *map, uint16_t function)
{
    for (int i = 0; i < PLACES; i++)
        if (atomic_load_explicit(&places[i].state, memory_order_acquire) == PLACE_WAITING &&
            places[i].map == map && places[i].function == function && atomic_exchange(&places[i].asked, false))
            return true;
    return false;
}

static void replace(const struct place *place, uint64_t real)
{
    if (place->addend != 0) {
        record(place, real, EVIDENCE_UNSEEN);
        return;
    }
    uint64_t stub = stub_for(place->function, real);
    bool replaced = stub != real && store((uint64_t *)place->address, stub);
    enum evidence_via via = place->type == RELOCATION_JUMP_SLOT ? EVIDENCE_VIA_PLT : EVIDENCE_VIA_RELOCATION;
    record(place, real, replaced ? via : EVIDENCE_UNSEEN);
}

/* Until it is relocated, a PLT's slot holds where its own code lies, before the dynamic section in any layout. */
static bool is_link_time_address(const struct place *place, uint64_t word)
{
    return place->type == RELOCATION_JUMP_SLOT && place->map->l_addr != 0 &&
           word < (uint64_t)place->map->l_ld - place->map->l_addr;
}

/* True where the place needs no further look. */
static bool settle(const struct place *place)
{
    uint64_t word = __atomic_load_n((const uint64_t *)place->address, __ATOMIC_ACQUIRE);
    uint64_t real = word - place->addend;
    if (word == 0 || real == 0 || is_link_time_address(place, word) || object_at(real) == EVIDENCE_NO_OBJECT)
        return false; /* not relocated yet, or the symbol is weak and was not found */
    if (stub_at(real) != NULL) {
        tables_note_capability(place->type == RELOCATION_JUMP_SLOT ? 0 : CAPABILITY_NOW, 0);
        return true;
    }
    if (is_in_object(place->map, real) && real != place->own)
        return true; /* the object's PLT: the linker reports the binding at the first call */
    if (watched_functions[place->function].kind == SYMBOL_LOOKUP && object_is_c_library(object_at(real)))
        return true; /* the real dlsym */
    replace(place, real);
    return true;
}

void relocations_settle(void)
{
    if (atomic_load_explicit(&waiting, memory_order_relaxed) == 0)
        return;
    for (int i = 0; i < PLACES; i++) {
        uint32_t expected = PLACE_WAITING;
        if (atomic_load_explicit(&places[i].state, memory_order_relaxed) != PLACE_WAITING ||
            !atomic_compare_exchange_strong(&places[i].state, &expected, PLACE_BUSY))
            continue;
        if (settle(&places[i]))
            release(&places[i]);
        else
            atomic_store_explicit(&places[i].state, PLACE_WAITING, memory_order_release);
    }
}
