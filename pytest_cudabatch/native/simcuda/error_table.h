/*
 * Names and texts of error codes: those that the simulated libraries answer, and those seen in the field.
 */
#ifndef CUDABATCH_ERROR_TABLE_H
#define CUDABATCH_ERROR_TABLE_H

struct error_entry {
    int code;
    const char *driver_name;  /* NULL where only the runtime has the code */
    const char *runtime_name;
    const char *text;         /* what cuGetErrorString and cudaGetErrorString say */
};

/* Returns the entry of a code, or NULL. */
const struct error_entry *error_find(int code);

#endif
