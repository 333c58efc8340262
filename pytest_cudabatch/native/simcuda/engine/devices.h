/*
 * How many devices there are, and which of them the calling thread uses.
 *
 * CUDABATCH_SIM_DEVICES is their number, 1 where it is not set; it is read once, by cuInit.
 */
#ifndef CUDABATCH_DEVICES_H
#define CUDABATCH_DEVICES_H

#include "../abi.h"

enum { MOST_DEVICES = 8 };

/* In the place of a device: all of them. */
enum { ANY_DEVICE = -1 };

/* Reads the setting. CUDA_INVALID_VALUE, with one line on stderr, for one that is no number from 1 to 8. */
int devices_start(void);

int device_count(void);

/* The device of the thread's current context; the first one where it has none. Contexts keep it up to date. */
int device_current(void);
void device_set_current(int device);

#endif
