/*
 * The adversarial schedule: a choice, by seed, among all that CUDA's contract leaves open.
 *
 * CUDABATCH_SIM_SCHEDULE is `fair` (or not set), `adversarial` or `adversarial:SEED`; without a seed it is 0.
 * The setting is read once, by cuInit. Every choice is a function of the seed and of a number that counts
 * what the program submits, so a program that calls CUDA from one thread meets the same choices each time.
 *
 * What is chosen: whether work runs as soon as it may or is held until somebody waits for it, asks for it
 * several times, or it has been ready for some time; which of the works that may run does so first; in which
 * order the copies of a batch are made; whether a source of order ANY is read in the call or in stream order;
 * and whether calls that need not wait for their work do. schedule.c says how the first two are used.
 */
#ifndef CUDABATCH_ADVERSARY_H
#define CUDABATCH_ADVERSARY_H

#include <stdbool.h>

#include "../abi.h"

struct copy;

/* Reads the setting. CUDA_INVALID_VALUE, with one line on stderr, for one that is none. */
int adversary_start(void);

bool adversary_is_on(void);

/* The rest is for when it is on. `ticket` is a work's position in the order of submission. */

/* Does the work run as soon as it may? If not it is held. */
bool adversary_is_eager(uint64_t ticket);

/* Nanoseconds after which work that may run does so although nobody waits for it. */
int64_t adversary_patience(uint64_t ticket);

/* Of several works that may run the one with the least rank goes first. */
uint64_t adversary_rank(uint64_t ticket);

/* How many queries answer "not ready" before one makes the work run; at least 1. */
unsigned adversary_queries(uint64_t ticket);

/* Puts the copies of a batch into another order. */
void adversary_shuffle(struct copy *copies, size_t count, uint64_t ticket);

/* Is the source of a batch read in the call, where its order (ANY) leaves that open? A new choice each time. */
bool adversary_reads_early(void);

/* A number that hangs on both: chance that can be repeated, whatever the schedule is. */
uint64_t adversary_draw(uint64_t seed, uint64_t number);

#endif
