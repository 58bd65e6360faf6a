/*
 * A master whose workers are killed while they are at work. "owners MODE FOLDER ROUNDS": eight workers take a slot each, and each is killed
 * and replaced ROUNDS times. Then a line says how many slots the master gave back, and all live until standard input ends.
 *   plain      nothing else
 *   released   the master gives back the slots of those that it waited for
 *   nobody     workers give up their rights before they take a slot
 *   closed     workers close all files and go to another folder before they take a slot
 *   namespace  one worker, in a namespace of pids of its own; the master tries to take its slot
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kymo.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static kymo_metric metrics[] = {
    {.name = "requests_total", .kind = KYMO_COUNTER},
    {.name = "open_requests", .kind = KYMO_GAUGE, .type = KYMO_I64},
};
static kymo_publisher publisher;
static kymo_slot slot;
static const char *mode;

static void work(int ready) {
    int fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (strcmp(mode, "nobody") == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(1);
    if (strcmp(mode, "closed") == 0) {
        for (fd = 3; fd < 1024; fd++)
            if (fd != ready)
                close(fd);
        if (chdir("/") != 0)
            _exit(1);
    }
    if (kymo_slot_take(&publisher, &slot) != 0)
        _exit(1);
    kymo_add(&slot, 0, 1);
    kymo_add(&slot, 1, 1);
    kymo_begin(&slot, KYMO_PLAIN, "GET /slow", 9, 0, 0);
    if (write(ready, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

/* Forks a worker and waits until it is at work. */
static pid_t start(void) {
    int ends[2];
    char byte;
    pid_t child;
    if (pipe(ends) != 0)
        exit(1);
    child = fork();
    if (child == 0)
        work(ends[1]);
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) {
        puts("a worker has no slot");
        exit(1);
    }
    close(ends[0]);
    return child;
}

static void end(pid_t worker) {
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
}

int main(int argc, char **argv) {
    kymo_config config = {0};
    pid_t workers[8];
    unsigned released = 0;
    int rounds, n, round, count = 8;
    if (argc < 4)
        return 2;
    alarm(600);
    mode = argv[1];
    rounds = atoi(argv[3]);
    if (chdir(argv[2]) != 0)
        return 1;
    config.name = "owners";
    config.slots = 24;
    config.metrics = metrics;
    config.n_metrics = 2;
    config.folder = ".";
    if (kymo_open(&publisher, &config) != 0)
        puts(publisher.why);
    if (strcmp(mode, "namespace") == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            return 1;
        count = 1;
    }
    for (n = 0; n < count; n++)
        workers[n] = start();
    for (round = 0; round < rounds; round++)
        for (n = 0; n < count; n++) {
            end(workers[n]);
            if (strcmp(mode, "released") == 0)
                released += kymo_release_ended(&publisher, workers[n]);
            workers[n] = start();
        }
    if (strcmp(mode, "namespace") == 0)
        released = kymo_release_ended(&publisher, 1) + kymo_release_ended(&publisher, 0) + (kymo_slot_take_at(&publisher, &slot, 0) == 0);
    printf("%u\n", released);
    fflush(stdout);
    getchar();
    for (n = 0; n < count; n++)
        end(workers[n]);
    puts("none");
    fflush(stdout);
    getchar();
    if (strcmp(mode, "released") == 0)
        released = kymo_release_ended(&publisher, 0);
    printf("%u\n", released);
    fflush(stdout);
    getchar();
    return 0;
}
