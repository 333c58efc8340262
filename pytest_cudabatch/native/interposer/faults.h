/*
 * What a fatal signal says about its cause, kept in the slot: evidence of a crash that needs no debugger.
 *
 * A handler by raw sigaction notes the fault, puts back the action that was there before and returns; then the
 * same fault happens again, for the program's own handler, a traceback or a core file. What the program sees
 * is the same but for the question which handler is installed. A handler that the program installs later
 * replaces ours, and the fault stays unknown.
 */
#ifndef CUDABATCH_FAULTS_H
#define CUDABATCH_FAULTS_H

#include "evidence.h"

/* Installs the handler for each fatal signal that is not ignored; once installed, for a forked child too. */
void faults_watch(void);

/* For each call: a thread that calls has survived its fault, so that is forgotten and the next one awaited. */
void faults_survived(struct evidence_fault *fault);

#endif
