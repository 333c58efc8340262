/*
 * Implements execs.h. The functions of exec(3), execveat(2) and posix_spawn(3) with libc's own signatures; they
 * may run in the child of a vfork, so they ask the kernel for everything and keep nothing.
 */
#define _GNU_SOURCE /* link.h keeps ElfW's users behind it */
#include "execs.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include "elf_image.h"
#include "memory.h"
#include "processes.h"
#include "system_calls.h"

enum exec_function {
    EXECVE, EXECV, EXECVP, EXECVPE, FEXECVE, EXECVEAT, EXECL, EXECLE, EXECLP, POSIX_SPAWN, POSIX_SPAWNP, EXECS
};

typedef char *const *strings;

/* Set at the first binding of each; a second implementation of one is left alone. */
static _Atomic uint64_t real_addresses[EXECS];

#define REAL(function, parameters) ((int (*) parameters)atomic_load(&real_addresses[function]))

/* Of the C library that defines those; 0: not known. */
static _Atomic uint64_t real_getenv;

static void keep_tail(char kept[EVIDENCE_PATH], const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    text_copy(kept, EVIDENCE_PATH, length > EVIDENCE_PATH ? text + length - EVIDENCE_PATH : text);
}

/* NOTE_UNAUDITED where the environment lacks one of the two variables. */
static uint32_t audit_in(strings environment)
{
    bool library = false, file = false;
    for (; environment != NULL && *environment != NULL; environment++) {
        library |= text_begins(*environment, "LD_AUDIT=");
        file |= text_begins(*environment, "CUDABATCH_EVIDENCE=");
    }
    return library && file ? 0 : NOTE_UNAUDITED;
}

/* The same for the environment that this process has by now, which is passed on by those that are given none. */
static uint32_t audit_in_own(void)
{
    char *(*get)(const char *) = (char *(*)(const char *))atomic_load(&real_getenv);
    return get == NULL || (get("LD_AUDIT") != NULL && get("CUDABATCH_EVIDENCE") != NULL) ? 0 : NOTE_UNAUDITED;
}

static bool has_slash(const char *name)
{
    for (; *name != '\0'; name++)
        if (*name == '/')
            return true;
    return false;
}

/* A note about the file of that name; `by_path` where a name without a slash is looked for. */
static struct process_note note_of(const char *name, bool by_path, uint32_t flags)
{
    struct process_note note = {
        .kind = NOTE_EXEC, .pid = system_getpid(), .parent = system_getppid(), .flags = flags};
    if (name == NULL)
        return note;
    keep_tail(note.program, name);
    if (by_path && !has_slash(name))
        note.flags |= NOTE_SEARCHED;
    else if (name[0] != '/')
        process_link("/proc/self/cwd", note.detail);
    return note;
}

static void link_of_descriptor(int descriptor, char path[EVIDENCE_PATH])
{
    char link[32] = "/proc/self/fd/", digits[12];
    size_t count = 0, end = sizeof "/proc/self/fd/" - 1;
    do {
        digits[count++] = (char)('0' + descriptor % 10);
        descriptor /= 10;
    } while (descriptor > 0);
    while (count > 0)
        link[end++] = digits[--count];
    link[end] = '\0';
    process_link(link, path);
}

static int failed(struct process_note *note, int result)
{
    note->kind = NOTE_EXEC_FAILED;
    process_note(note);
    return result;
}

static int watched_execve(const char *path, strings arguments, strings environment)
{
    struct process_note note = note_of(path, false, audit_in(environment));
    process_note(&note);
    return failed(&note, REAL(EXECVE, (const char *, strings, strings))(path, arguments, environment));
}

static int watched_execv(const char *path, strings arguments)
{
    struct process_note note = note_of(path, false, audit_in_own());
    process_note(&note);
    return failed(&note, REAL(EXECV, (const char *, strings))(path, arguments));
}

static int watched_execvp(const char *name, strings arguments)
{
    struct process_note note = note_of(name, true, audit_in_own());
    process_note(&note);
    return failed(&note, REAL(EXECVP, (const char *, strings))(name, arguments));
}

static int watched_execvpe(const char *name, strings arguments, strings environment)
{
    struct process_note note = note_of(name, true, audit_in(environment));
    process_note(&note);
    return failed(&note, REAL(EXECVPE, (const char *, strings, strings))(name, arguments, environment));
}

static int watched_fexecve(int descriptor, strings arguments, strings environment)
{
    struct process_note note = note_of(NULL, false, audit_in(environment));
    link_of_descriptor(descriptor, note.program);
    process_note(&note);
    return failed(&note, REAL(FEXECVE, (int, strings, strings))(descriptor, arguments, environment));
}

static int watched_execveat(int directory, const char *path, strings arguments, strings environment, int flags)
{
    bool of_descriptor = path != NULL && path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0;
    struct process_note note = note_of(of_descriptor ? NULL : path, false, audit_in(environment));
    if (of_descriptor)
        link_of_descriptor(directory, note.program);
    else if (directory != AT_FDCWD && note.program[0] != '/')
        link_of_descriptor(directory, note.detail);
    process_note(&note);
    return failed(&note, REAL(EXECVEAT, (int, const char *, strings, strings, int))(
                             directory, path, arguments, environment, flags));
}

static size_t count_arguments(va_list list)
{
    size_t count = 1; /* argv[0], which is a parameter of its own */
    while (va_arg(list, char *) != NULL)
        count++;
    return count;
}

/* Gathers the arguments up to the NULL into `array`, which takes as many and the NULL, as libc does it. Goes on
 * in the caller's own list: what is behind the NULL is the caller's next. */
static void gather_arguments(char **array, char *first, va_list *list)
{
    *array++ = first;
    while ((*array = va_arg(*list, char *)) != NULL)
        array++;
}

#define GATHER(arguments, first)                           \
    va_list list;                                          \
    va_start(list, first);                                 \
    char *arguments[count_arguments(list) + 1];            \
    va_end(list);                                          \
    va_start(list, first);                                 \
    gather_arguments(arguments, (char *)(uintptr_t)(first), &list)

static int watched_execl(const char *path, const char *first, ...)
{
    GATHER(arguments, first);
    va_end(list);
    return watched_execv(path, arguments);
}

static int watched_execle(const char *path, const char *first, ...)
{
    GATHER(arguments, first);
    strings environment = va_arg(list, strings);
    va_end(list);
    return watched_execve(path, arguments, environment);
}

static int watched_execlp(const char *name, const char *first, ...)
{
    GATHER(arguments, first);
    va_end(list);
    return watched_execvp(name, arguments);
}

static int note_spawned(int result, int pid, const char *name, bool by_path, strings environment)
{
    if (result != 0)
        return result;
    struct process_note note = note_of(name, by_path, audit_in(environment));
    note.kind = NOTE_SPAWNED;
    note.parent = note.pid;
    note.pid = (uint32_t)pid;
    process_note(&note);
    return result;
}

static int watched_posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
                               strings arguments, strings environment)
{
    int child = 0;
    int result = REAL(POSIX_SPAWN, (int *, const char *, const void *, const void *, strings, strings))(
        &child, path, actions, attributes, arguments, environment);
    if (pid != NULL && result == 0)
        *pid = child;
    return note_spawned(result, child, path, false, environment);
}

static int watched_posix_spawnp(int *pid, const char *name, const void *actions, const void *attributes,
                                strings arguments, strings environment)
{
    int child = 0;
    int result = REAL(POSIX_SPAWNP, (int *, const char *, const void *, const void *, strings, strings))(
        &child, name, actions, attributes, arguments, environment);
    if (pid != NULL && result == 0)
        *pid = child;
    return note_spawned(result, child, name, true, environment);
}

/* `needs` is what ours calls, where that is another function than the one that it replaces. */
static const struct {
    const char *name;
    void (*ours)(void); /* called with the signature of the function that it replaces */
    enum exec_function needs;
} functions[EXECS] = {
#define OURS(function) (void (*)(void))function
    [EXECVE] = {"execve", OURS(watched_execve), EXECVE},
    [EXECV] = {"execv", OURS(watched_execv), EXECV},
    [EXECVP] = {"execvp", OURS(watched_execvp), EXECVP},
    [EXECVPE] = {"execvpe", OURS(watched_execvpe), EXECVPE},
    [FEXECVE] = {"fexecve", OURS(watched_fexecve), FEXECVE},
    [EXECVEAT] = {"execveat", OURS(watched_execveat), EXECVEAT},
    [EXECL] = {"execl", OURS(watched_execl), EXECV},
    [EXECLE] = {"execle", OURS(watched_execle), EXECVE},
    [EXECLP] = {"execlp", OURS(watched_execlp), EXECVP},
    [POSIX_SPAWN] = {"posix_spawn", OURS(watched_posix_spawn), POSIX_SPAWN},
    [POSIX_SPAWNP] = {"posix_spawnp", OURS(watched_posix_spawnp), POSIX_SPAWNP},
};

bool execs_defined_by(const struct link_map *map)
{
    struct elf_symbols symbols;
    return map->l_ld != NULL && elf_symbols_read(map->l_ld, map->l_addr, &symbols) &&
           elf_defines(&symbols, functions[EXECVE].name);
}

/* Remembers the real function; false where another one of that name is known. */
static bool remember(enum exec_function function, uint64_t real)
{
    uint64_t known = 0;
    return real != 0 && (atomic_compare_exchange_strong(&real_addresses[function], &known, real) || known == real);
}

static uint64_t address_in(const struct link_map *map, const char *name)
{
    struct elf_symbols symbols;
    if (map->l_ld == NULL || !elf_symbols_read(map->l_ld, map->l_addr, &symbols))
        return 0;
    const Elf64_Sym *symbol = elf_find(&symbols, name);
    return symbol != NULL ? map->l_addr + symbol->st_value : 0;
}

uint64_t exec_watched(const char *name, uint64_t real, const struct link_map *definer)
{
    if (!text_begins(name, "exec") && !text_begins(name, "fexec") && !text_begins(name, "posix_spawn"))
        return real;
    for (int i = 0; i < EXECS; i++) {
        if (!text_equal(functions[i].name, name))
            continue;
        if (atomic_load(&real_getenv) == 0)
            atomic_store(&real_getenv, address_in(definer, "getenv"));
        enum exec_function needs = functions[i].needs;
        uint64_t needed = needs == (enum exec_function)i ? real : address_in(definer, functions[needs].name);
        return remember(needs, needed) ? (uint64_t)functions[i].ours : real;
    }
    return real;
}
