/*
 * The 3D batch call: every box is written out as its rows, and the rows are a batch; see batch.c.
 *
 * Source: the words of cuda.h on cuMemcpy3DBatchAsync, and the 3D answers of matrix/contract.toml (driver
 * 580.159.04). An order that there is not names its operation, unlike in the flat call. Assumed: so do flags
 * and hints, and extents and pitches.
 */
#include <stdlib.h>

#include "copies.h"

/* What the rows of all operations become; the arrays of `batch` are the ones above it. */
struct box_rows {
    cuda_address *destinations, *sources;
    size_t *sizes;
    struct copy_attributes *attributes;
    size_t *first_copies; /* of each operation: its first row */
    struct batch batch;
};

/* How the rows of a box lie to each other. */
struct pitch {
    size_t row_length;   /* bytes from one row to the next */
    size_t layer_height; /* rows from one layer to the next */
};

static struct pitch pitch_of(const struct copy_operand *operand, const struct copy_3d *operation)
{
    size_t row_length = operand->pointer.row_length, layer_height = operand->pointer.layer_height;
    return (struct pitch){row_length == 0 ? operation->width : row_length,
                          layer_height == 0 ? operation->height : layer_height};
}

/* Bytes from the box's first one to its last; false where there is no room for it in the address space. */
static bool measure(const struct copy_operand *operand, const struct copy_3d *operation, size_t *span)
{
    struct pitch pitch = pitch_of(operand, operation);
    size_t layer, whole;
    if (pitch.row_length < operation->width || pitch.layer_height < operation->height)
        return false;
    if (__builtin_mul_overflow(pitch.row_length, pitch.layer_height, &layer) ||
        __builtin_mul_overflow(layer, operation->depth, &whole))
        return false;
    *span = (operation->depth - 1) * layer + (operation->height - 1) * pitch.row_length + operation->width;
    return *span <= UINTPTR_MAX - operand->pointer.address;
}

/* Needs the lock. Looks at the box as a whole, so that only what fits in memory is written out as rows. */
static bool operand_is_valid(const struct copy_operand *operand, const struct copy_3d *operation)
{
    size_t span;
    const struct region *region;
    return operand->type == OPERAND_POINTER && operand->pointer.address != 0 && measure(operand, operation, &span) &&
           memory_standing(operand->pointer.address, span, &region) != STANDING_ASTRIDE;
}

static struct copy_attributes attributes_of(const struct copy_3d *operation)
{
    return (struct copy_attributes){operation->source_access_order, operation->source.pointer.hint,
                                    operation->destination.pointer.hint, operation->flags};
}

/* Needs the lock. An array operand has no hint; its type is refused before that is looked at. */
static bool operation_is_valid(const struct copy_3d *operation)
{
    struct copy_attributes attributes = attributes_of(operation);
    return operation->width != 0 && operation->height != 0 && operation->depth != 0 &&
           operand_is_valid(&operation->source, operation) && operand_is_valid(&operation->destination, operation) &&
           copy_attributes_are_valid(&attributes);
}

/* Adds up the rows of all operations, or says which of them is at fault. */
static int count_rows(const struct copy_3d *operations, size_t count, size_t *total, size_t *failed)
{
    int code = CUDA_OK;
    *total = 0;
    engine_lock();
    for (size_t index = 0; index < count && code == CUDA_OK; index++) {
        const struct copy_3d *operation = &operations[index];
        if (operation_is_valid(operation)) {
            *total += operation->height * operation->depth;
        } else {
            *failed = index;
            code = CUDA_INVALID_VALUE;
        }
    }
    engine_unlock();
    return code;
}

static void rows_free(struct box_rows *rows)
{
    free(rows->destinations);
    free(rows->sources);
    free(rows->sizes);
    free(rows->attributes);
    free(rows->first_copies);
}

static bool rows_allocate(struct box_rows *rows, size_t row_count, size_t operation_count)
{
    *rows = (struct box_rows){
        .destinations = calloc(row_count, sizeof *rows->destinations),
        .sources = calloc(row_count, sizeof *rows->sources),
        .sizes = calloc(row_count, sizeof *rows->sizes),
        .attributes = calloc(operation_count, sizeof *rows->attributes),
        .first_copies = calloc(operation_count, sizeof *rows->first_copies),
    };
    rows->batch = (struct batch){rows->destinations, rows->sources, rows->sizes, row_count,
                                 rows->attributes, rows->first_copies, operation_count};
    if (rows->destinations && rows->sources && rows->sizes && rows->attributes && rows->first_copies)
        return true;
    rows_free(rows);
    return false;
}

static cuda_address row_address(const struct copy_operand *operand, struct pitch pitch, size_t z, size_t y)
{
    return operand->pointer.address + (z * pitch.layer_height + y) * pitch.row_length;
}

/* Writes out the rows of one operation from index `at` on; returns the index behind them. */
static size_t write_rows(struct box_rows *rows, size_t at, const struct copy_3d *operation)
{
    struct pitch from = pitch_of(&operation->source, operation), to = pitch_of(&operation->destination, operation);
    for (size_t z = 0; z < operation->depth; z++)
        for (size_t y = 0; y < operation->height; y++) {
            rows->sources[at] = row_address(&operation->source, from, z, y);
            rows->destinations[at] = row_address(&operation->destination, to, z, y);
            rows->sizes[at++] = operation->width;
        }
    return at;
}

static void write_all(struct box_rows *rows, const struct copy_3d *operations, size_t count)
{
    size_t at = 0;
    for (size_t index = 0; index < count; index++) {
        const struct copy_3d *operation = &operations[index];
        rows->first_copies[index] = at;
        rows->attributes[index] = attributes_of(operation);
        at = write_rows(rows, at, operation);
    }
}

/* The operation that a row belongs to; SIZE_MAX, no row, stays what it is. */
static size_t operation_of(const struct box_rows *rows, size_t row)
{
    size_t index = rows->batch.attribute_count - 1;
    if (row == SIZE_MAX)
        return row;
    while (rows->first_copies[index] > row)
        index--;
    return index;
}

int copy_batch_3d(struct stream *stream, const struct copy_3d *operations, size_t count, size_t *failed)
{
    struct box_rows rows;
    size_t row_count;
    *failed = SIZE_MAX;
    if (count == 0 || operations == NULL)
        return CUDA_INVALID_VALUE;
    int code = count_rows(operations, count, &row_count, failed);
    if (code != CUDA_OK)
        return code;
    if (!rows_allocate(&rows, row_count, count))
        return CUDA_OUT_OF_MEMORY;
    write_all(&rows, operations, count);
    code = copy_batch(stream, &rows.batch, failed);
    *failed = operation_of(&rows, *failed);
    rows_free(&rows);
    return code;
}
