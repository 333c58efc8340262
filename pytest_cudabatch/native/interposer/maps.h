/* Finding the file that an address is mapped from, by /proc/self/maps: true for whatever loaded it. */
#ifndef CUDABATCH_MAPS_H
#define CUDABATCH_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "evidence.h"

struct mapped_file {
    uint64_t start; /* of the mapping that holds the address */
    uint64_t end;
    bool writable, executable;
    uint64_t header; /* where the file's beginning is mapped readable; 0: nowhere, or no file */
    uint64_t header_end;
    char path[EVIDENCE_PATH]; /* filled up with zeros; the tail of a longer path; "" for no file */
};

/* False where the address is not mapped or the maps cannot be read. */
bool maps_find(uint64_t address, struct mapped_file *found);

#endif
