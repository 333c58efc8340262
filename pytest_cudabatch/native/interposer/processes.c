/* Implements processes.h, from /proc/self. */
#include "processes.h"

#include "memory.h"
#include "slot.h"
#include "system_calls.h"

enum { NOTES_PATH_BYTES = 4096 + 16, LINK_BYTES = 4096 };

void process_link(const char *link, char path[EVIDENCE_PATH])
{
    char target[LINK_BYTES];
    long length = system_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)target, sizeof target, 0, 0);
    memset(path, 0, EVIDENCE_PATH);
    if (system_failed(length))
        return;
    long kept = length < EVIDENCE_PATH ? length : EVIDENCE_PATH;
    memcpy(path, target + length - kept, (size_t)kept);
}

/* The beginning of the command line, up to its first zero. */
static void read_name(char *name, size_t size)
{
    memset(name, 0, size);
    int descriptor = system_open("/proc/self/cmdline", O_RDONLY);
    if (descriptor < 0)
        return;
    long length = system_read(descriptor, name, size);
    system_close(descriptor);
    size_t end = 0;
    while (length > 0 && end < (size_t)length && name[end] != '\0')
        end++;
    memset(name + end, 0, size - end);
}

void process_describe(struct evidence_process *process)
{
    process->pid = system_getpid();
    process->parent = system_getppid();
    process_link("/proc/self/exe", process->program);
    read_name(process->name, sizeof process->name);
}

void process_started(void)
{
    struct process_note note = {.kind = NOTE_STARTED, .pid = system_getpid(), .parent = system_getppid()};
    process_link("/proc/self/exe", note.program);
    read_name(note.detail, sizeof note.detail);
    process_note(&note);
}

void process_note(const struct process_note *note)
{
    static const char suffix[] = ".processes";
    char path[NOTES_PATH_BYTES];
    const char *file = slot_file_path();
    size_t length = 0;
    while (file[length] != '\0')
        length++;
    memcpy(path, file, length);
    memcpy(path + length, suffix, sizeof suffix);
    system_append(path, note, sizeof *note);
}
