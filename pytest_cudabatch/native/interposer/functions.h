/*
 * The functions that are watched: one table, which says what happens at a call and how a look-up by
 * cuGetProcAddress names the function. A function's number is its place in the table; it is written into
 * evidence, so the order is part of the file's layout (evidence.h).
 */
#ifndef CUDABATCH_FUNCTIONS_H
#define CUDABATCH_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum function_kind {
    BATCH_COPY,     /* the calls that this project is about, both ABIs */
    SINGLE_COPY,    /* what a fallback uses */
    STREAM_CREATE,  /* stores a handle through its first parameter */
    STREAM_DESTROY, /* takes a handle as its first parameter */
    LOOKUP,         /* answers a name with an address */
    SYMBOL_LOOKUP,  /* dlsym and dlvsym, where another library than the C library defines them */
    VERSION_QUERY,  /* stores a version through its only parameter */
    MEMORY,         /* gives memory or takes it back: memory_functions.h, in a traced process only */
    FUNCTION_KINDS,
};

enum { NO_PARAMETER = 0xff };

struct watched_function {
    const char *name; /* as exported */
    enum function_kind kind;
    uint8_t stream_at;  /* copies: index of the parameter that is the stream, where there is no failIdx */
    uint8_t fail_at;    /* BATCH_COPY: index of failIdx in the older list, whose stream comes one later */
    uint8_t count_at;   /* BATCH_COPY: index of the number of descriptors */
    uint8_t version_at; /* LOOKUP: index of the version parameter, or NO_PARAMETER */
    uint8_t flags_at;   /* LOOKUP: index of the flags parameter */
    uint8_t status_at;  /* LOOKUP: index of where the query's result goes, or NO_PARAMETER */
    bool per_thread;    /* the default stream is the calling thread's (the _ptsz twins) */
    const char *asked;  /* the name that cuGetProcAddress takes for it; NULL: not looked up that way */
    uint32_t since;     /* first version, as asked, that is answered with this function */
};

/* Ends at the first entry without a name. */
extern const struct watched_function watched_functions[];

enum { NOT_WATCHED = 0xffff };

/* Number of the function exported as `name`, or NOT_WATCHED. */
uint16_t function_named(const char *name);

/* Number of the function with which cuGetProcAddress answers `name` at `version`, or NOT_WATCHED. */
uint16_t function_asked(const char *name, uint32_t version, bool per_thread);

/* Number of the function that answers the same name in the other ABI; NOT_WATCHED where there is none, as for
 * a runtime's functions, whose ABI is their library's. */
uint16_t function_of_other_abi(uint16_t function);

#endif
