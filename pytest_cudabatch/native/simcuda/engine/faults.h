/*
 * Faults of the driver itself, asked for by the environment: CUDABATCH_SIM_FAULTS holds rules TARGET=EFFECT with ';'
 * between them, in the interposer's words for injections. They happen inside libcuda, to calls that are right.
 *
 * TARGET: `batch`, every flat batch; `mixed-h2d`, those of more than 1,024 copies from the host to the device in
 * different sizes, as driver 580.159.04 fails on them. EFFECT: `crash`, a read of address 0; `hang`.
 */
#ifndef CUDABATCH_FAULTS_H
#define CUDABATCH_FAULTS_H

#include "copies.h"

/*
 * Called without the engine's lock for a batch whose arguments are valid; does not return where a rule is about
 * it. Else CUDA_OK, or CUDA_INVALID_VALUE, with one line on stderr, where the variable holds no such rules.
 */
int fault_on_batch(const struct batch *batch);

#endif
