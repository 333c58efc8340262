/*
 * Reads /proc/self/maps in small pieces, character by character, since a line may be longer than any piece.
 * A line: "7f10-7f20 r-xp 00001000 08:01 1234   /path".
 */
#include "maps.h"

#include "memory.h"
#include "system_calls.h"

enum { PIECES_MAX = 65536 };

/* The latest mapping of a file's beginning; an object's segments follow it in ascending order. */
struct beginning {
    uint64_t start, end, device, inode;
};

static uint64_t hex_digit(char c)
{
    return (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static void take_number(struct maps_line *line, uint64_t *number, char c, char separator, unsigned base)
{
    if (c == separator)
        line->field++;
    else
        *number = *number * base + hex_digit(c);
}

static void take_path(struct maps_line *line, char c)
{
    if (c == ' ' && line->path_length == 0)
        return;
    line->path[line->path_length++ % EVIDENCE_PATH] = c;
}

static void take(struct maps_line *line, char c)
{
    switch (line->field) {
    case START: take_number(line, &line->start, c, '-', 16); break;
    case END: take_number(line, &line->end, c, ' ', 16); break;
    case PERMISSIONS:
        line->readable |= c == 'r';
        line->writable |= c == 'w';
        line->executable |= c == 'x';
        line->field += c == ' ';
        break;
    case OFFSET: take_number(line, &line->offset, c, ' ', 16); break;
    case DEVICE:
        if (c != ':')
            take_number(line, &line->device, c, ' ', 16);
        break;
    case INODE: take_number(line, &line->inode, c, ' ', 10); break;
    case PATH: take_path(line, c); break;
    }
}

static void copy_path(const struct maps_line *line, char *to)
{
    size_t kept = line->path_length < EVIDENCE_PATH ? line->path_length : EVIDENCE_PATH;
    size_t from = line->path_length - kept;
    memset(to, 0, EVIDENCE_PATH);
    for (size_t i = 0; i < kept; i++)
        to[i] = line->path[(from + i) % EVIDENCE_PATH];
}

static void describe(const struct maps_line *line, const struct beginning *beginning, struct mapped_file *found)
{
    bool same_file = line->inode != 0 && line->inode == beginning->inode && line->device == beginning->device;
    found->start = line->start;
    found->end = line->end;
    found->writable = line->writable;
    found->executable = line->executable;
    found->header = same_file ? beginning->start : 0;
    found->header_end = same_file ? beginning->end : 0;
    copy_path(line, found->path);
}

/* Judges a complete line; true when it holds the address. */
static bool finish(const struct maps_line *line, struct beginning *beginning, uint64_t address,
                   struct mapped_file *found)
{
    if (line->inode != 0 && line->offset == 0 && line->readable)
        *beginning = (struct beginning){line->start, line->end, line->device, line->inode};
    if (address < line->start || address >= line->end)
        return false;
    describe(line, beginning, found);
    return true;
}

static void begin_line(struct maps_line *line)
{
    memset(line, 0, sizeof *line); /* START is 0 */
}

bool maps_find(uint64_t address, struct mapped_file *found, struct maps_reading *reading)
{
    int descriptor = system_open("/proc/self/maps", O_RDONLY);
    if (descriptor < 0)
        return false;
    struct beginning beginning = {0};
    bool done = false;
    begin_line(&reading->line);
    for (int pieces = 0; pieces < PIECES_MAX && !done; pieces++) {
        long size = system_read(descriptor, reading->piece, sizeof reading->piece);
        if (size <= 0)
            break;
        for (long i = 0; i < size && !done; i++) {
            if (reading->piece[i] != '\n') {
                take(&reading->line, reading->piece[i]);
                continue;
            }
            done = finish(&reading->line, &beginning, address, found);
            begin_line(&reading->line);
        }
    }
    system_close(descriptor);
    return done;
}
