/*
 * The CUDA version that a simulated library reports, set for the process by the environment.
 */
#ifndef CUDABATCH_VERSION_SETTING_H
#define CUDABATCH_VERSION_SETTING_H

/* What one file can be: its own version, and the versions with the same exported functions. */
struct version_range {
    const char *file;     /* named in the message, such as "simulated libcuda 12.8" */
    const char *variable; /* such as "CUDABATCH_SIM_DRIVER" */
    int own;              /* 1000 * major + 10 * minor */
    int first;
    int last;
};

/*
 * Reads the version that the environment asks for: `own` where the variable is not set, and 0, with one
 * line on stderr, where its value is no version that this file can be.
 */
int version_setting(const struct version_range *range);

#endif
