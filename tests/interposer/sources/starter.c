/* Starts the program argv[2] in the way that argv[1] names; its exit status is the started program's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int wait_for(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(int count, char **arguments)
{
    const char *way = arguments[1], *program = arguments[2];
    char **passed = arguments + 2;
    char many[] = "many";
    pid_t pid;
    if (count != 3)
        return 98;
#ifdef UNSET
    unsetenv(UNSET);
#endif
    if (strcmp(way, "execve") == 0)
        execve(program, passed, environ);
    else if (strcmp(way, "execv") == 0)
        execv(program, passed);
    else if (strcmp(way, "execvp") == 0)
        execvp(program, passed);
    else if (strcmp(way, "execvpe") == 0)
        execvpe(program, passed, environ);
    else if (strcmp(way, "fexecve") == 0)
        fexecve(open(program, O_RDONLY | O_CLOEXEC), passed, environ);
    else if (strcmp(way, "execveat") == 0)
        execveat(AT_FDCWD, program, passed, environ, 0);
    else if (strcmp(way, "execveat-descriptor") == 0)
        execveat(open(program, O_RDONLY | O_CLOEXEC), "", passed, environ, AT_EMPTY_PATH);
    else if (strcmp(way, "execl") == 0) /* more arguments than registers and copied stack words hold */
        execl(program, program, many, many, many, many, many, many, many, many, many, many, many, many, many, many,
              many, many, many, many, NULL);
    else if (strcmp(way, "execlp") == 0)
        execlp(program, program, many, NULL);
    else if (strcmp(way, "execle") == 0)
        execle(program, program, many, NULL, environ);
    else if (strcmp(way, "posix_spawn") == 0)
        return posix_spawn(&pid, program, NULL, NULL, passed, environ) == 0 ? wait_for(pid) : 97;
    else if (strcmp(way, "posix_spawnp") == 0)
        return posix_spawnp(&pid, program, NULL, NULL, passed, environ) == 0 ? wait_for(pid) : 97;
    else if (strcmp(way, "vfork") == 0) {
        pid = vfork();
        if (pid == 0) {
            execve(program, passed, environ);
            _exit(97);
        }
        return wait_for(pid);
    }
    return 97; /* the program was not started */
}
