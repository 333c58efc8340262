/*
 * Who this process is, and the notes by which a recording learns of processes that need no slot and of
 * programs in which this library cannot run.
 *
 * Notes lie beside the evidence file, in <its path>.processes: records of one size, in the order in which
 * they were appended, each by one write. The file is opened for each note, because a descriptor kept open
 * could be closed by the program and mean another file by the next note.
 */
#ifndef CUDABATCH_PROCESSES_H
#define CUDABATCH_PROCESSES_H

#include "evidence.h"

enum process_note_kind {
    NOTE_STARTED = 1,     /* this library runs in `pid`, whose file is `program` and argv[0] `detail` */
    NOTE_EXEC = 2,        /* `pid` is about to become `program`, relative to the directory `detail` */
    NOTE_EXEC_FAILED = 3, /* the latest NOTE_EXEC of `pid` did not happen */
    NOTE_SPAWNED = 4,     /* `parent` has started `program` as `pid` */
};

/* Bits of a note's `flags`. */
enum {
    NOTE_SEARCHED = 1,  /* `program` is a name to be found by PATH */
    NOTE_UNAUDITED = 2, /* the environment given to the program lacks what loads this library */
};

struct process_note {
    uint32_t kind; /* enum process_note_kind */
    uint32_t pid;
    uint32_t parent;
    uint32_t flags;
    char program[EVIDENCE_PATH]; /* as everywhere: filled up with zeros, a longer path keeps its tail */
    char detail[EVIDENCE_PATH];
};

_Static_assert(sizeof(struct process_note) == 16 + 2 * EVIDENCE_PATH, "a note has no padding");

/* Fills in this process. */
void process_describe(struct evidence_process *process);

/* Appends NOTE_STARTED for this process. */
void process_started(void);

/* Appends a note of another kind. */
void process_note(const struct process_note *note);

/* Reads where a link of /proc/self leads; all zeros where it cannot be read. */
void process_link(const char *link, char path[EVIDENCE_PATH]);

#endif
