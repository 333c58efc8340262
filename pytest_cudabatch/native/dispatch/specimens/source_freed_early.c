/* Specimen source-freed-early. Its one fault: a host function of the stream gathers small sources in host memory
 * into a bounce buffer, from which the batch copies; but the list that this function reads belongs to the call
 * and not to the stream. The next call writes its own over it, whether the function has run or not (as cuDF 23561
 * and rmm 2526 did with the sources themselves).
 */
#include "specimen.h"

enum { SMALL = 1024, MOST = 4096, MEMORY_TYPE_HOST = 1 };

/* A page of it each. The addresses stay the same from call to call. */
struct piece {
    const void *from;
    void *to;
    size_t size;
};

/* Written by each call, read by the host functions of this call, or of an earlier one: that is the fault. */
static struct piece pieces[MOST];
static size_t piece_count;

/* MOST times SMALL bytes of pinned memory, allocated by the first call that needs it. */
static char *bounce;

typedef int (*allocate)(void **, size_t);
typedef int (*get_attributes)(void *, const void *);
typedef int (*launch)(void *, void (*)(void *), void *);

static void gather(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < piece_count; i++)
        memcpy(pieces[i].to, pieces[i].from, pieces[i].size);
}

/* Pinned, since cudaMemcpyAsync and the batch call treat other host memory differently. */
static int is_pinned(const void *address)
{
    int attributes[32] = {0}; /* cudaPointerAttributes, which begins with the type, is smaller in every version */
    get_attributes ask = (get_attributes)cudabatch_symbol(RTLD_DEFAULT, "cudaPointerGetAttributes");
    return ask != NULL && ask(attributes, address) == CUDABATCH_SUCCESS && attributes[0] == MEMORY_TYPE_HOST;
}

static int is_bounced(const void *source, size_t size)
{
    return size > 0 && size <= SMALL && piece_count < MOST && is_pinned(source);
}

/* Writes the list of what is bounced and returns the sources of the batch, or NULL without memory. */
static const void **redirect(const void *const *srcs, const size_t *sizes, size_t count)
{
    const void **redirected = malloc(count * sizeof *redirected);
    piece_count = 0;
    for (size_t i = 0; i < count && redirected != NULL; i++) {
        redirected[i] = srcs[i];
        if (!is_bounced(srcs[i], sizes[i]))
            continue;
        void *to = bounce + piece_count * SMALL;
        pieces[piece_count++] = (struct piece){srcs[i], to, sizes[i]};
        redirected[i] = to;
    }
    return redirected;
}

int cudabatch_copy(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, void *stream)
{
    launch launch_host_function = (launch)cudabatch_symbol(RTLD_DEFAULT, "cudaLaunchHostFunc");
    allocate allocate_pinned = (allocate)cudabatch_symbol(RTLD_DEFAULT, "cudaMallocHost");
    int code = CUDABATCH_SUCCESS;
    if (launch_host_function == NULL || allocate_pinned == NULL || count == 0)
        return specimen_copy(&specimen_right_steps, dsts, srcs, sizes, count, stream);
    if (bounce == NULL)
        code = allocate_pinned((void **)&bounce, (size_t)MOST * SMALL);
    if (code != CUDABATCH_SUCCESS)
        return code;
    const void **redirected = redirect(srcs, sizes, count);
    if (redirected == NULL)
        return SPECIMEN_OUT_OF_MEMORY;
    if (piece_count > 0)
        code = launch_host_function(stream, gather, NULL);
    if (code == CUDABATCH_SUCCESS)
        code = specimen_copy(&specimen_right_steps, dsts, redirected, sizes, count, stream);
    free(redirected);
    return code;
}
