/* Implements objects.h: a cache of address ranges in front of /proc/self/maps. */
#include "objects.h"

#include <stdatomic.h>

#include "elf_image.h"
#include "evidence.h"
#include "maps.h"
#include "memory.h"
#include "tables.h"

/* Where the object of the same index lies now; end 0: not loaded, or not known yet. Any thread writes. */
static struct {
    _Atomic uint64_t start;
    _Atomic uint64_t end;
} ranges[EVIDENCE_OBJECTS];

static uint16_t cached(uint64_t address)
{
    for (uint16_t i = 0; i < EVIDENCE_OBJECTS; i++) {
        uint64_t end = atomic_load_explicit(&ranges[i].end, memory_order_acquire);
        if (address < end && address >= atomic_load_explicit(&ranges[i].start, memory_order_relaxed))
            return i;
    }
    return EVIDENCE_NO_OBJECT;
}

/* Describes what is mapped at the address; code in no file is described by its mapping. */
static void describe(const struct mapped_file *file, struct evidence_object *object, struct elf_image *image)
{
    struct elf_symbols symbols;
    memset(object, 0, sizeof *object);
    memcpy(object->path, file->path, sizeof object->path);
    if (file->header == 0 || !elf_image_read(file->header, file->header_end, image)) {
        *image = (struct elf_image){.start = file->start, .end = file->end};
        if (object->path[0] == '\0')
            text_copy(object->path, sizeof object->path, "[anonymous]");
        return;
    }
    object->base = image->base;
    if (image->dynamic != NULL && elf_symbols_read(image->dynamic, image->base, &symbols))
        text_copy(object->soname, sizeof object->soname, symbols.soname);
}

uint16_t object_find(uint64_t address, struct object_search *search)
{
    uint16_t known = cached(address);
    if (known != EVIDENCE_NO_OBJECT)
        return known;
    if (!maps_find(address, &search->file, &search->reading))
        return EVIDENCE_NO_OBJECT;
    describe(&search->file, &search->object, &search->image);
    int index = tables_add(OBJECTS, &search->object.entry);
    if (index == TABLE_FULL)
        return EVIDENCE_NO_OBJECT;
    atomic_store_explicit(&ranges[index].start, search->image.start, memory_order_relaxed);
    atomic_store_explicit(&ranges[index].end, search->image.end, memory_order_release);
    return (uint16_t)index;
}

uint16_t object_at(uint64_t address)
{
    struct object_search search;
    return object_find(address, &search);
}

uint64_t object_offset(uint16_t object, uint64_t address)
{
    const struct evidence_object *found = tables_object(object);
    return found != NULL ? address - found->base : address;
}

uint32_t object_runtime_major(uint16_t object)
{
    static const char prefix[] = "libcudart.so.";
    const struct evidence_object *found = tables_object(object);
    if (found == NULL || memcmp(found->soname, prefix, sizeof prefix - 1) != 0)
        return 0;
    uint32_t major = 0;
    const char *digits = found->soname + sizeof prefix - 1;
    for (int i = 0; i < 3 && digits[i] >= '0' && digits[i] <= '9'; i++)
        major = major * 10 + (uint32_t)(digits[i] - '0');
    return major;
}

uint64_t object_symbol(uint64_t within, const char *name)
{
    struct mapped_file file;
    struct maps_reading reading;
    struct elf_image image;
    struct elf_symbols symbols;
    if (!maps_find(within, &file, &reading) || file.header == 0 || !elf_image_read(file.header, file.header_end, &image) ||
        image.dynamic == NULL || !elf_symbols_read(image.dynamic, image.base, &symbols))
        return 0;
    const Elf64_Sym *symbol = elf_find(&symbols, name);
    if (symbol == NULL || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
        return 0;
    return image.base + symbol->st_value;
}

uint64_t object_runtime_of_other_abi(uint16_t runtime)
{
    enum { FIRST_WITH_8_PARAMETERS = 13 };
    uint32_t own = object_runtime_major(runtime);
    for (uint16_t i = 0; own != 0 && i < EVIDENCE_OBJECTS; i++) {
        uint32_t major = object_runtime_major(i);
        bool is_other = major != 0 && (major < FIRST_WITH_8_PARAMETERS) != (own < FIRST_WITH_8_PARAMETERS);
        if (is_other && atomic_load_explicit(&ranges[i].end, memory_order_acquire) != 0)
            return atomic_load_explicit(&ranges[i].start, memory_order_relaxed);
    }
    return 0;
}

/* What the dynamic linker knows the object by: its SONAME, else its file's name; terminated. */
static void name_of(const struct evidence_object *object, char name[EVIDENCE_NAME + 1])
{
    int start = 0, end = 0;
    name[EVIDENCE_NAME] = '\0';
    if (object->soname[0] != '\0') {
        memcpy(name, object->soname, EVIDENCE_NAME);
        return;
    }
    for (; end < EVIDENCE_PATH && object->path[end] != '\0'; end++)
        if (object->path[end] == '/')
            start = end + 1;
    for (int i = 0; i < EVIDENCE_NAME; i++)
        name[i] = start + i < end ? object->path[start + i] : '\0';
}

/* owner_of in pytest_cudabatch/interposer/evidence.py judges by the same names. */
bool name_is_cuda(const char *name)
{
    if (text_begins(name, "libcudart.so"))
        return true;
    if (!text_begins(name, "libcuda.so"))
        return false;
    const char *version = name + sizeof "libcuda.so" - 1;
    while (*version == '.' || (*version >= '0' && *version <= '9'))
        version++;
    return *version == '\0';
}

bool name_is_c_library(const char *name)
{
    return text_begins(name, "libc.so") || text_begins(name, "libdl.so"); /* one library since glibc 2.34 */
}

bool object_is_c_library(uint16_t object)
{
    const struct evidence_object *found = tables_object(object);
    char name[EVIDENCE_NAME + 1];
    if (found == NULL)
        return false;
    name_of(found, name);
    return name_is_c_library(name);
}

/* Objects whose watched functions somebody else calls: whatever they call in turn, they pass on. */
static _Atomic bool passes_on[EVIDENCE_OBJECTS];

void object_passes_on(uint16_t object)
{
    if (object < EVIDENCE_OBJECTS && !atomic_load_explicit(&passes_on[object], memory_order_relaxed))
        atomic_store_explicit(&passes_on[object], true, memory_order_relaxed);
}

bool object_is_under_test(uint16_t object)
{
    const struct evidence_object *found = tables_object(object);
    char name[EVIDENCE_NAME + 1];
    if (found == NULL)
        return true;
    if (atomic_load_explicit(&passes_on[object], memory_order_relaxed))
        return false;
    name_of(found, name);
    return !name_is_cuda(name);
}

void objects_forget(uint64_t address)
{
    uint16_t object = cached(address);
    if (object != EVIDENCE_NO_OBJECT)
        atomic_store_explicit(&ranges[object].end, 0, memory_order_release);
}
