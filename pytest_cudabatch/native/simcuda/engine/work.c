/* Pieces of work and the marks that some of them reach or wait for; see schedule.h. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

/* A piece of staging memory; its bytes lie behind it. */
struct staging {
    struct staging *next;
};

struct mark *mark_create(void)
{
    struct mark *mark = calloc(1, sizeof *mark);
    if (mark != NULL)
        mark->references = 1;
    return mark;
}

struct mark *mark_retain(struct mark *mark)
{
    mark->references++;
    return mark;
}

void mark_release(struct mark *mark)
{
    if (mark != NULL && --mark->references == 0)
        free(mark);
}

struct work *work_create(enum work_kind kind)
{
    struct work *work = calloc(1, sizeof *work);
    if (work != NULL)
        work->kind = kind;
    return work;
}

struct work *work_create_copies(size_t count)
{
    if (count > (SIZE_MAX - sizeof(struct work)) / sizeof(struct copy))
        return NULL;
    struct work *work = malloc(sizeof *work + count * sizeof(struct copy));
    if (work != NULL)
        *work = (struct work){.kind = WORK_COPIES, .batch = {.count = count, .copies = (struct copy *)(work + 1)}};
    return work;
}

struct work *work_clone(const struct work *work)
{
    if (work->kind != WORK_COPIES) {
        struct work *clone = work_create(work->kind);
        if (clone != NULL)
            *clone = *work;
        return clone;
    }
    struct work *clone = work_create_copies(work->batch.count);
    if (clone != NULL)
        memcpy(clone->batch.copies, work->batch.copies, work->batch.count * sizeof *work->batch.copies);
    return clone;
}

void *work_stage(struct work *work, size_t size)
{
    struct staging *staging = size > SIZE_MAX - sizeof *staging ? NULL : malloc(sizeof *staging + size);
    if (staging == NULL)
        return NULL;
    staging->next = work->batch.staging;
    work->batch.staging = staging;
    return staging + 1;
}

static void free_staging(struct staging *staging)
{
    while (staging != NULL) {
        struct staging *next = staging->next;
        free(staging);
        staging = next;
    }
}

void work_free(struct work *work)
{
    if (work->kind == WORK_COPIES)
        free_staging(work->batch.staging);
    if (work->kind == WORK_RECORD || work->kind == WORK_WAIT)
        mark_release(work->mark);
    free(work);
}
