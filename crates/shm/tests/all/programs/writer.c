/*
 * Writers for tests. "writer MODE FOLDER ...":
 *   stop SIGNAL     publishes "before", and sends itself the signal in the middle of publishing "in the middle"
 *   alternate RATE  publishes two texts in turn, RATE times a second (0: as often as it can), until it is killed
 *   cells           stores all bits and none into a gauge in turn, until it is killed
 *   fork            publishes, forks, and shows that the child publishes nothing until it takes a slot
 *   usual           publishes where files usually go ("usual" has no folder)
 *   once            publishes a command and ends
 */
#define KYMO_BEFORE_GENERATION() stop_here()
static void stop_here(void);
#include "kymo.h"
#include <sys/resource.h>
#include <sys/wait.h>

static int signal_to_send;
static kymo_publisher publisher;
static kymo_slot slot;
static kymo_metric metrics[] = {
    {.name = "commands_total", .kind = KYMO_COUNTER},
    {.name = "bits", .kind = KYMO_GAUGE, .type = KYMO_U64},
    {.name = "duration", .kind = KYMO_HISTOGRAM, .sub_bits = 2, .min_exponent = 10, .max_exponent = 36},
};

static void stop_here(void) {
    if (signal_to_send != 0)
        raise(signal_to_send);
}

static void publish(const char *text) {
    kymo_begin(&slot, KYMO_SQL, text, strlen(text), 0, 0);
    kymo_add(&slot, 0, 1);
}

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void alternate(uint64_t rate) {
    char first[1025], second[701];
    const uint64_t start = now_ns();
    uint64_t number;
    memset(first, 'a', 1024);
    memset(second, 'b', 700);
    first[1024] = second[700] = '\0';
    ready();
    for (number = 0;; number++) {
        kymo_begin(&slot, KYMO_SQL, number & 1 ? first : second, number & 1 ? 1024 : 700, number, number);
        if (rate != 0)
            while (now_ns() - start < number * (1000000000u / rate)) {
            }
        kymo_end(&slot);
    }
}

static void forked(void) {
    if (kymo_open(&publisher, NULL) != 0) /* it is open already: nothing happens */
        exit(1);
    publish("parent");
    if (fork() == 0) {
        alarm(120);
        publish("of no one");
        kymo_end(&slot);
        kymo_slot_release(&slot);
        if (slot.cells != NULL || kymo_slot_take(&publisher, &slot) != 0 || slot.index != 1)
            _exit(1);
        publish("child");
        ready();
        pause();
    }
    publish("parent again");
    pause();
}

int main(int argc, char **argv) {
    kymo_config config = {0};
    if (argc < 2)
        return 2;
    alarm(120); /* also where the test that started it was killed */
    config.name = "writer";
    config.slots = 2;
    config.metrics = metrics;
    config.n_metrics = 3;
    config.folder = argc > 2 ? argv[2] : NULL;
    if (kymo_open(&publisher, &config) != 0)
        puts(publisher.why);
    kymo_slot_take(&publisher, &slot);
    publish("before");
    if (strcmp(argv[1], "stop") == 0) {
        ready();
        signal_to_send = atoi(argv[3]);
        publish("in the middle");
    } else if (strcmp(argv[1], "alternate") == 0) {
        alternate(strtoul(argv[3], NULL, 10));
    } else if (strcmp(argv[1], "cells") == 0) {
        ready();
        for (;;) {
            kymo_set(&slot, metrics[1].cell, UINT64_MAX);
            kymo_set(&slot, metrics[1].cell, 0);
        }
    } else if (strcmp(argv[1], "fork") == 0) {
        forked();
    } else {
        puts(publisher.path);
    }
    return 0;
}
