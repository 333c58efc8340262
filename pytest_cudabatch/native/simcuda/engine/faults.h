/*
 * Faults of the driver itself, asked for by the environment, in the interposer's words for injections. They happen
 * inside libcuda, to calls that are right.
 *
 * CUDABATCH_SIM_FAULTS holds rules, TARGET[>COUNT][@N[+]]=EFFECT, with ';' between them.
 *
 * TARGET   batch      every flat batch; with >COUNT those of more than so many copies
 *          mixed-h2d  batches from the host to the device in different sizes, >1024 where no count is given, as
 *                     driver 580.159.04 fails on them
 *          per-copy   every asynchronous single copy
 *          allocate   every allocation of device or pinned memory
 * @N       the N-th such call of the process only; @N+ that one and all later ones
 * EFFECT   a code, which is answered in place of the call; from 700 to 720 the context is lost with it, and every
 *          later call answers the same
 *          crash, a read of address 0, and hang; crash:PERCENT and hang:PERCENT happen that often, by
 *          CUDABATCH_SIM_FAULT_SEED (a number, 0 where it is not set)
 *          delay:MS   before the call; late:MS before its work; flip inverts a bit of what a copy has written
 */
#ifndef CUDABATCH_FAULTS_H
#define CUDABATCH_FAULTS_H

#include "copies.h"

enum fault_target { FAULT_BATCH, FAULT_PER_COPY, FAULT_ALLOCATE };

/* What is left to do about a call that goes on. */
struct fault {
    unsigned late; /* milliseconds */
    bool flips;
};

/*
 * Called without the engine's lock for a call whose arguments are valid; `batch` is NULL for what is no batch. Does
 * not return where a rule says so. Else a cuda_code: not CUDA_OK where a rule answers, and CUDA_INVALID_VALUE, with
 * one line on stderr, where the variable holds no such rules.
 */
int fault_on_call(enum fault_target target, const struct batch *batch, struct fault *fault);

/* Queue what the fault does before, and after, the work of the call, whose first copy writes to `written`. */
int fault_before_work(struct stream *stream, const struct fault *fault);
int fault_after_work(struct stream *stream, const struct fault *fault, void *written);

/* The code by which the context was lost, or CUDA_OK. Needs no lock. */
int fault_lost_context(void);

#endif
