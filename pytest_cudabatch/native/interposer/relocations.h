/*
 * Watched functions that are bound without la_symbind: pointers that relocations fill, in a table of addresses
 * (GLOB_DAT: -fno-plt, or an address taken by code) or in data (ABS64, which x86-64 calls 64: an address taken by a constant).
 *
 * While an object is relocated, the dynamic linker reports what has the type JUMP_SLOT. All three types are
 * computed alike, so before that happens the type in the object's table is changed: then the linker reports
 * the binding and stores what it is answered, ahead of any constructor. Where it does not report (glibc before
 * 2.35) or the table cannot be changed, the pointer itself is replaced as soon as it can be; what cannot be
 * replaced either is noted as unseen.
 *
 * The table cannot be changed where it shares a segment with code, because code must not lose its rights for a
 * moment: a linker's choice, and the usual one on aarch64.
 *
 * Never seen: copies that were made of a pointer before it was replaced (only where the linker does not
 * report), also by IRELATIVE resolvers; calls within the library that defines the function; static functions.
 */
#ifndef CUDABATCH_RELOCATIONS_H
#define CUDABATCH_RELOCATIONS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Call when an object has been mapped and is not relocated yet. */
void relocations_opened(const struct link_map *map);

/* Call before an object is unmapped. */
void relocations_closed(const struct link_map *map);

/* Whether the binding that is being reported for the object is that of a pointer, not of its PLT. */
bool relocation_reported(const struct link_map *map, uint16_t function);

/* Looks at the pointers that have been filled since. Call when objects may have been relocated. */
void relocations_settle(void);

/* Makes the linker report the relocation of a pointer to `symbol`. False where the object has none. */
bool relocation_report(const struct link_map *map, const char *symbol);

#endif
