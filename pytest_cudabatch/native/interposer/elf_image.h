/* Reading an ELF object that the dynamic linker has mapped: where it lies, its SONAME, what it defines. */
#ifndef CUDABATCH_ELF_IMAGE_H
#define CUDABATCH_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image {
    uint64_t base;  /* load bias */
    uint64_t start; /* first address of the object's segments */
    uint64_t end;   /* one past their last */
    const Elf64_Dyn *dynamic; /* NULL: a static program */
};

/* Reads the ELF header mapped at [header, header_end); false where it is none. */
bool elf_image_read(uint64_t header, uint64_t header_end, struct elf_image *image);

struct elf_symbols {
    const char *strings;
    const Elf64_Sym *symbols;
    const uint32_t *gnu_hash; /* NULL where the object has none, as for the next */
    const uint32_t *hash;
    const char *soname;
};

/* Reads a dynamic section; false where it has no symbol table. */
bool elf_symbols_read(const Elf64_Dyn *dynamic, uint64_t base, struct elf_symbols *symbols);

/* The object's own definition of the name, in any version, or NULL. */
const Elf64_Sym *elf_find(const struct elf_symbols *symbols, const char *name);

static inline bool elf_defines(const struct elf_symbols *symbols, const char *name)
{
    return elf_find(symbols, name) != NULL;
}

/* A dynamic section's tables of relocations. RELR tables hold relative ones only, which bind no symbol. */
struct elf_relocations {
    Elf64_Rela *table; /* without the relative ones at its beginning */
    uint64_t count;
    Elf64_Rela *plt;
    uint64_t plt_count;
};

void elf_relocations_read(const Elf64_Dyn *dynamic, uint64_t base, struct elf_relocations *relocations);

#endif
