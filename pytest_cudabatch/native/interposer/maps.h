/* Finding the file that an address is mapped from, by /proc/self/maps: true for whatever loaded it. */
#ifndef CUDABATCH_MAPS_H
#define CUDABATCH_MAPS_H

#include <stdbool.h>
#include <stddef.h>
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

enum maps_field { START, END, PERMISSIONS, OFFSET, DEVICE, INODE, PATH };

/* Room for reading the maps: the caller's, since it is much for the stack of a signal handler. */
struct maps_reading {
    struct maps_line {
        enum maps_field field; /* the one that is being read */
        uint64_t start, end, offset, device, inode;
        bool readable, writable, executable;
        size_t path_length;
        char path[EVIDENCE_PATH]; /* a ring: a longer path overwrites its own beginning */
    } line;
    char piece[1024];
};

/* False where the address is not mapped or the maps cannot be read. */
bool maps_find(uint64_t address, struct mapped_file *found, struct maps_reading *reading);

#endif
