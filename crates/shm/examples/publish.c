/*
 * A program that says what it is doing: it "executes" commands, and publishes each with its text, its kind and how long it took.
 *
 *     cc -std=gnu11 -O2 -I include -o publish crates/shm/examples/publish.c
 *     ./publish 1000000
 *
 * It ends when its standard input does. examples/publish.rs is the same in Rust.
 */
#include "kymo.h"

static const char *const reads[] = {"kind", "read", NULL};
static const char *const writes[] = {"kind", "write", NULL};

/* Cells are given in the order of this table: counters and gauges have one each. */
enum { READS, WRITES, OPEN, DURATION };

static kymo_metric metrics[] = {
    {.name = "commands_total", .help = "Commands that ended.", .labels = reads, .kind = KYMO_COUNTER},
    {.name = "commands_total", .help = "Commands that ended.", .labels = writes, .kind = KYMO_COUNTER},
    {.name = "open_sessions", .help = "Sessions that are open.", .kind = KYMO_GAUGE, .type = KYMO_I64},
    {.name = "command_duration", .unit = "seconds", .help = "How long commands took; one of eight is measured.", .scale = 1e-9,
     .kind = KYMO_HISTOGRAM, .sub_bits = 2, .min_exponent = 10, .max_exponent = 36},
};

static const char *const slot_labels[] = {"user", "application"};

/* One of eight, chosen at random: a fixed stride might always meet the same command. */
static int is_measured(uint32_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return (*random & 7) == 0;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void execute(kymo_slot *slot, unsigned number, uint32_t *random) {
    static const char *const texts[] = {"get colour", "set colour 7"};
    const unsigned is_write = number % 4 == 3;
    const int measured = is_measured(random);
    const uint64_t start = measured ? now_ns() : 0;
    kymo_begin(slot, KYMO_PLAIN, texts[is_write], strlen(texts[is_write]), start, is_write + 1);
    /* ... here the program works ... */
    if (measured)
        kymo_observe(slot, &metrics[DURATION], now_ns() - start, 8);
    kymo_add(slot, is_write ? WRITES : READS, 1);
    kymo_end(slot);
}

int main(int argc, char **argv) {
    static kymo_publisher publisher;
    static kymo_slot slot;
    kymo_config config = {0};
    const char *const labels[] = {"ada", "publish.c"};
    const unsigned commands = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
    uint32_t random = 2463534242u;
    unsigned number;
    config.name = "example";
    config.slots = 4;
    config.metrics = metrics;
    config.n_metrics = sizeof metrics / sizeof metrics[0];
    config.slot_labels = slot_labels;
    config.n_slot_labels = 2;
    config.stamp_clock = KYMO_STAMP_MONOTONIC;
    if (kymo_open(&publisher, &config) != 0)
        fprintf(stderr, "%s\n", publisher.why); /* and it goes on */
    kymo_slot_take(&publisher, &slot);
    kymo_identify(&slot, (uint32_t)getpid(), 0, now_ns(), labels);
    kymo_add(&slot, OPEN, 1);
    for (number = 0; number < commands; number++)
        execute(&slot, number, &random);
    puts(publisher.path);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    kymo_add(&slot, OPEN, (uint64_t)-1);
    kymo_close(&publisher);
    return 0;
}
