/* Implements elf_image.h from the System V ABI and the GNU hash section's layout. */
#include "elf_image.h"

#include "memory.h"

enum { DYNAMIC_ENTRIES_MAX = 512, CHAIN_MAX = 65536, PAGE = 4096 };

static bool is_elf64(const Elf64_Ehdr *header, uint64_t available)
{
    return available >= sizeof *header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_phentsize == sizeof(Elf64_Phdr) &&
           header->e_phoff + (uint64_t)header->e_phnum * sizeof(Elf64_Phdr) <= available;
}

bool elf_image_read(uint64_t header, uint64_t header_end, struct elf_image *image)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)header;
    if (!is_elf64(elf, header_end - header))
        return false;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(header + elf->e_phoff);
    uint64_t lowest = UINT64_MAX, highest = 0, dynamic = 0;
    for (int i = 0; i < elf->e_phnum; i++) {
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = segments[i].p_vaddr;
        if (segments[i].p_type != PT_LOAD)
            continue;
        uint64_t end = segments[i].p_vaddr + segments[i].p_memsz;
        lowest = segments[i].p_vaddr < lowest ? segments[i].p_vaddr : lowest;
        highest = end > highest ? end : highest;
    }
    if (lowest > highest)
        return false;
    image->base = header - lowest / PAGE * PAGE;
    image->start = header;
    image->end = image->base + highest;
    image->dynamic = dynamic != 0 ? (const Elf64_Dyn *)(image->base + dynamic) : NULL;
    return true;
}

/* glibc turns the section's addresses into absolute ones where it is writable; tell by the value. */
static uint64_t absolute(uint64_t value, uint64_t base)
{
    return value < base ? value + base : value;
}

bool elf_symbols_read(const Elf64_Dyn *dynamic, uint64_t base, struct elf_symbols *symbols)
{
    uint64_t soname = 0;
    *symbols = (struct elf_symbols){0};
    for (int i = 0; i < DYNAMIC_ENTRIES_MAX && dynamic[i].d_tag != DT_NULL; i++) {
        uint64_t value = dynamic[i].d_un.d_ptr;
        switch (dynamic[i].d_tag) {
        case DT_STRTAB: symbols->strings = (const char *)absolute(value, base); break;
        case DT_SYMTAB: symbols->symbols = (const Elf64_Sym *)absolute(value, base); break;
        case DT_GNU_HASH: symbols->gnu_hash = (const uint32_t *)absolute(value, base); break;
        case DT_HASH: symbols->hash = (const uint32_t *)absolute(value, base); break;
        case DT_SONAME: soname = value; break;
        default: break;
        }
    }
    if (symbols->strings == NULL || symbols->symbols == NULL)
        return false;
    symbols->soname = soname != 0 ? symbols->strings + soname : "";
    return true;
}

/* The symbol at this index where it defines the name, else NULL. */
static const Elf64_Sym *defined_as(const struct elf_symbols *symbols, uint32_t index, const char *name)
{
    const Elf64_Sym *symbol = &symbols->symbols[index];
    bool is = symbol->st_shndx != SHN_UNDEF && text_equal(symbols->strings + symbol->st_name, name);
    return is ? symbol : NULL;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Section: bucket count, first symbol, words of the Bloom filter, its shift; filter, buckets, chain. */
static const Elf64_Sym *find_by_gnu_hash(const struct elf_symbols *symbols, const char *name)
{
    const uint32_t *table = symbols->gnu_hash;
    uint32_t bucket_count = table[0], first = table[1], filter_words = table[2], shift = table[3];
    const uint64_t *filter = (const uint64_t *)(table + 4);
    const uint32_t *buckets = (const uint32_t *)(filter + filter_words);
    const uint32_t *chain = buckets + bucket_count;
    uint32_t hash = gnu_hash_of(name);
    if (bucket_count == 0 || filter_words == 0)
        return NULL;
    uint64_t word = filter[hash / 64 % filter_words];
    if ((word >> hash % 64 & word >> (hash >> shift) % 64 & 1) == 0)
        return NULL;
    uint32_t index = buckets[hash % bucket_count];
    for (uint32_t steps = 0; index >= first && steps < CHAIN_MAX; index++, steps++) {
        uint32_t entry = chain[index - first];
        const Elf64_Sym *found = (entry | 1) == (hash | 1) ? defined_as(symbols, index, name) : NULL;
        if (found != NULL || (entry & 1) != 0) /* the bucket's last */
            return found;
    }
    return NULL;
}

static uint32_t system_v_hash_of(const char *name)
{
    uint32_t hash = 0;
    for (; *name != '\0'; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

static const Elf64_Sym *find_by_hash(const struct elf_symbols *symbols, const char *name)
{
    uint32_t bucket_count = symbols->hash[0];
    const uint32_t *buckets = symbols->hash + 2;
    const uint32_t *chain = buckets + bucket_count;
    uint32_t index = bucket_count != 0 ? buckets[system_v_hash_of(name) % bucket_count] : STN_UNDEF;
    for (uint32_t steps = 0; index != STN_UNDEF && steps < CHAIN_MAX; index = chain[index], steps++) {
        const Elf64_Sym *found = defined_as(symbols, index, name);
        if (found != NULL)
            return found;
    }
    return NULL;
}

const Elf64_Sym *elf_find(const struct elf_symbols *symbols, const char *name)
{
    if (symbols->gnu_hash != NULL)
        return find_by_gnu_hash(symbols, name);
    return symbols->hash != NULL ? find_by_hash(symbols, name) : NULL;
}

void elf_relocations_read(const Elf64_Dyn *dynamic, uint64_t base, struct elf_relocations *relocations)
{
    uint64_t table = 0, size = 0, relative = 0, plt = 0, plt_size = 0;
    for (int i = 0; i < DYNAMIC_ENTRIES_MAX && dynamic[i].d_tag != DT_NULL; i++) {
        uint64_t value = dynamic[i].d_un.d_val;
        switch (dynamic[i].d_tag) {
        case DT_RELA: table = absolute(value, base); break;
        case DT_RELASZ: size = value; break;
        case DT_RELACOUNT: relative = value; break;
        case DT_JMPREL: plt = absolute(value, base); break;
        case DT_PLTRELSZ: plt_size = value; break;
        default: break;
        }
    }
    uint64_t count = table != 0 ? size / sizeof(Elf64_Rela) : 0;
    relative = relative < count ? relative : count;
    relocations->table = (Elf64_Rela *)table + relative;
    relocations->count = count - relative;
    relocations->plt = (Elf64_Rela *)plt;
    relocations->plt_count = plt != 0 ? plt_size / sizeof(Elf64_Rela) : 0;
}
