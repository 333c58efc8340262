/*
 * Handles of streams, events, graphs and pools, laid out so that misuse shows.
 *
 * Each handle is the address of a read-only page of its own whose first word points at the object. So a
 * write through a handle faults (a stream passed in failIdx's place), and reading through something that
 * is no handle faults or is told apart (&failIdx passed in the stream's place). A retired handle's page
 * becomes unreadable and is not used again before all others have been.
 *
 * The registry is guarded by the engine's lock (schedule.h), except handle_object.
 */
#ifndef CUDABATCH_HANDLES_H
#define CUDABATCH_HANDLES_H

#include <stdbool.h>

enum object_kind { OBJECT_STREAM, OBJECT_EVENT, OBJECT_GRAPH, OBJECT_EXECUTABLE, OBJECT_POOL };

/* First member of whatever has a handle. */
struct object {
    const struct object *self; /* its own address: tells an object from any other memory */
    enum object_kind kind;
    void *handle; /* NULL for objects without one, such as the default streams */
    int device;   /* of whose context it is */
};

/* Gives `object` a handle, in the thread's current context; false when memory or all handles are used up. Needs the lock. */
bool handle_create(struct object *object, enum object_kind kind);

/*
 * Returns the object behind a handle by reading through it, as a real driver does. Never returns for a
 * stale handle, for the address of something else, or for no address at all: that is SIGSEGV.
 */
struct object *handle_object(const void *handle, enum object_kind kind);

/* Returns the object of a live handle, NULL for anything else; reads nothing through it. Needs the lock. */
struct object *handle_find(const void *handle, enum object_kind kind);

/* Makes the handle's page unreadable. Needs the lock. */
void handle_retire(struct object *object);

/* Returns any live object of the kind and device, NULL when there is none. Needs the lock. */
struct object *handle_any(enum object_kind kind, int device);

#endif
