/* Implements stubs.h but for the code itself. */
#include "stubs.h"

#include <stdbool.h>

#include "evidence.h"
#include "functions.h"
#include "memory_functions.h"
#include "objects.h"
#include "tables.h"

/* Written by any thread that binds a function; a stub once published keeps its function and real address. */
static struct stub pool[STUBS];

static bool is_for(struct stub *stub, uint16_t function, uint64_t real)
{
    return atomic_load_explicit(&stub->state, memory_order_acquire) == EVIDENCE_PUBLISHED &&
           stub->real == real && stub->function == function;
}

static bool take(struct stub *stub, uint16_t function, uint64_t real)
{
    uint32_t expected = EVIDENCE_EMPTY;
    if (!atomic_compare_exchange_strong(&stub->state, &expected, EVIDENCE_WRITING))
        return false;
    stub->function = function;
    stub->real = real;
    atomic_store(&stub->owner, EVIDENCE_NO_OBJECT);
    atomic_store_explicit(&stub->state, EVIDENCE_PUBLISHED, memory_order_release);
    return true;
}

uint64_t stub_for(uint16_t function, uint64_t real)
{
    for (uint64_t i = 0; i < STUBS; i++)
        if (is_for(&pool[i], function, real) || take(&pool[i], function, real)) {
            atomic_store(&pool[i].owner, object_at(real));
            if (function < MEMORY_FUNCTIONS && watched_functions[function].kind == SYMBOL_LOOKUP)
                object_passes_on(object_at(real));
            return (uint64_t)stub_code + i * STUB_BYTES;
        }
    tables_note_loss();
    return real;
}

struct stub *stub_at(uint64_t address)
{
    uint64_t first = (uint64_t)stub_code;
    if (address < first || address >= first + STUBS * STUB_BYTES)
        return NULL;
    return &pool[(address - first) / STUB_BYTES];
}

struct stub *stub_numbered(uint64_t number)
{
    return &pool[number];
}
