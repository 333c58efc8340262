/*
 * Which object an address lies in. Judged by the mapping, not by what the dynamic linker said about a symbol:
 * with a preloaded dlsym the two differ.
 */
#ifndef CUDABATCH_OBJECTS_H
#define CUDABATCH_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "elf_image.h"
#include "evidence.h"
#include "maps.h"

/* Index in the table of objects, or EVIDENCE_NO_OBJECT where the address is not mapped or the table is full.
 * The first address in an object costs reading /proc/self/maps, further ones some comparisons. */
uint16_t object_at(uint64_t address);

/* Room for a search: some 3 KB, more than the stack of a signal handler may have. */
struct object_search {
    struct maps_reading reading;
    struct mapped_file file;
    struct evidence_object object;
    struct elf_image image;
};

/* The same as object_at with the room that it needs. */
uint16_t object_find(uint64_t address, struct object_search *search);

/* The address as the object's own file counts it; unchanged without an object. */
uint64_t object_offset(uint16_t object, uint64_t address);

/* 12 for libcudart.so.12; 0 for what is no libcudart. */
uint32_t object_runtime_major(uint16_t object);

/* Whether a SONAME, or a file's name where there is none, is that of a libcudart or a libcuda. */
bool name_is_cuda(const char *name);

/* Whether it is that of a library of the C library, which has the real dlsym. */
bool name_is_c_library(const char *name);
bool object_is_c_library(uint16_t object);

/* Notes that the object's watched functions are called by others: it is a shim, if it is not CUDA itself. */
void object_passes_on(uint16_t object);

/* Whether calls from the object are an implementation's own: it is no libcudart, no libcuda and no shim. */
bool object_is_under_test(uint16_t object);

/* Address of the function that the object around an address defines under the name; 0: it defines none. */
uint64_t object_symbol(uint64_t within, const char *name);

/* An address in a loaded libcudart whose ABI is not that of this one's, or 0. */
uint64_t object_runtime_of_other_abi(uint16_t runtime);

/* Forgets which object lies around the address: it is being unloaded, or another one was loaded there. */
void objects_forget(uint64_t address);

#endif
