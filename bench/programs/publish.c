/*
 * What a publish costs: "publish WORK COUNT BYTES", where WORK is "command" (begin with a text of so many bytes, six counters, a value of
 * a histogram, end), "counter" (one increment) or "nothing" (the loop alone). Prints nanoseconds each, the least of five rounds.
 * COUNT is for all rounds; so that two runs with different counts say how many instructions and system calls each one takes.
 */
#include "kymo.h"

static kymo_metric metrics[] = {
    {.name = "commands_total", .kind = KYMO_COUNTER}, {.name = "rows_total", .kind = KYMO_COUNTER},
    {.name = "hit_total", .kind = KYMO_COUNTER},      {.name = "read_total", .kind = KYMO_COUNTER},
    {.name = "written_total", .kind = KYMO_COUNTER},  {.name = "bytes_total", .kind = KYMO_COUNTER},
    {.name = "duration", .kind = KYMO_HISTOGRAM, .sub_bits = 2, .min_exponent = 10, .max_exponent = 36},
};

/* Called, and with nothing known of its arguments, as from a server's hooks. */
__attribute__((noipa)) static void command(kymo_slot *slot, const char *text, size_t length, uint64_t number) {
    uint64_t *cells;
    kymo_begin(slot, KYMO_SQL, text, length, number, 0);
    cells = kymo_cells(slot);
    if (cells != NULL) {
        kymo_cell_add(cells, 1);
        kymo_cell_add(cells + 1, number);
        kymo_cell_add(cells + 2, number);
        kymo_cell_add(cells + 3, 1);
        kymo_cell_add(cells + 4, 1);
        kymo_cell_add(cells + 5, length);
        kymo_cells_observe(cells + 6, 2, 10, 36, number, 1);
    }
    kymo_end(slot);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    static kymo_publisher publisher;
    static kymo_slot slot;
    static char text[65536];
    kymo_config config = {0};
    uint64_t count, number;
    double least = 1e18;
    int round;
    if (argc < 4)
        return 2;
    config.name = "bench";
    config.slots = 1;
    config.metrics = metrics;
    config.n_metrics = sizeof metrics / sizeof metrics[0];
    if (kymo_open(&publisher, &config) != 0 || kymo_slot_take(&publisher, &slot) != 0) {
        fprintf(stderr, "%s\n", publisher.why);
        return 1;
    }
    unlink(publisher.path);
    memset(text, 'x', sizeof text);
    count = strtoul(argv[2], NULL, 10) / 5;
    for (round = 0; round < 5; round++) {
        const double start = now_ns();
        double each;
        if (argv[1][0] == 'n') {
            for (number = 0; number < count; number++)
                __asm__ volatile("" : : "r"(number));
        } else if (argv[1][1] == 'o' && argv[1][2] == 'u') {
            for (number = 0; number < count; number++)
                kymo_add(&slot, metrics[0].cell, 1);
        } else {
            const size_t length = strtoul(argv[3], NULL, 10);
            for (number = 0; number < count; number++)
                command(&slot, text, length, 1000 + number % 4096 * 1000);
        }
        each = (now_ns() - start) / (double)count;
        least = each < least ? each : least;
    }
    printf("%.3f\n", least);
    return 0;
}
