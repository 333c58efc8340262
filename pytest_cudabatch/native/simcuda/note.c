/*
 * Marks a simulated library: discovery and audit read this ELF note and say `simulated`.
 * Section .note.cudabatch, owner "cudabatch", type 1, descriptor the text "simulated".
 */
#include <stdint.h>

struct simulated_note {
    uint32_t owner_size;
    uint32_t descriptor_size;
    uint32_t type;
    char owner[12];      /* padded to a multiple of four, as ELF notes are */
    char descriptor[12];
};

__attribute__((section(".note.cudabatch"), used, aligned(4))) static const struct simulated_note note = {
    .owner_size = sizeof "cudabatch",
    .descriptor_size = sizeof "simulated" - 1,
    .type = 1,
    .owner = "cudabatch",
    .descriptor = "simulated",
};
