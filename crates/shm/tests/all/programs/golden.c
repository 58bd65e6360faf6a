/* Makes the golden file in the folder that its argument names; golden.rs does the same. */
#include "kymo.h"

static const char *const kind[] = {"kind", "select", "db", "", NULL};
static kymo_metric metrics[] = {
    {.name = "commands_total", .help = "Commands.", .labels = kind, .kind = KYMO_COUNTER},
    {.name = "open", .kind = KYMO_GAUGE, .type = KYMO_I64},
    {.name = "load", .unit = "ratio", .scale = 0.5, .kind = KYMO_GAUGE, .type = KYMO_F64},
    {.name = "queue", .kind = KYMO_GAUGE, .type = KYMO_U64},
    {.name = "duration", .unit = "seconds", .help = "How long.", .scale = 1e-9, .kind = KYMO_HISTOGRAM, .sub_bits = 2,
     .min_exponent = 10, .max_exponent = 20},
};
static kymo_metric late = {.name = "late_total", .kind = KYMO_COUNTER};
static const char *const slot_labels[] = {"database", "user", "a name of thirty-one characters"};

int main(int argc, char **argv) {
    static kymo_publisher publisher;
    static kymo_slot first, second, third;
    const char *const names[] = {"stock", NULL, "an application whose name is longer than sixty-three characters are"};
    char text[200];
    kymo_config config = {0};
    kymo_origin origin = {4711, 123456, {0}, {0}, 1700000000000000001u};
    size_t n;
    if (argc < 2)
        return 2;
    for (n = 0; n < 16; n++) {
        origin.boot[n] = (uint8_t)(0xb0 + n);
        origin.epoch[n] = (uint8_t)(0xe0 + n);
    }
    config.name = "golden";
    config.slots = 3;
    config.text_bytes = 99; /* rounded up to 104 */
    config.metrics = metrics;
    config.n_metrics = 5;
    config.spare_cells = 1;
    config.spare_bytes = 64;
    config.slot_labels = slot_labels;
    config.n_slot_labels = 3;
    config.stamp_clock = KYMO_STAMP_POSTGRES;
    config.folder = argv[1];
    config.origin = &origin;
    if (kymo_open(&publisher, &config) != 0) {
        puts(publisher.why);
        return 1;
    }
    for (n = 0; n < sizeof text; n++)
        text[n] = (char)(n * 7 + 1);
    if (kymo_slot_take(&publisher, &first) != 0 || kymo_slot_take_at(&publisher, &second, 2) != 0 || kymo_slot_take_at(&publisher, &third, 2) == 0)
        return 1;
    kymo_identify(&first, 4712, 4711, 99, names);
    kymo_identify(&second, 4713, 0, 0, NULL);
    for (n = 0; n < 150; n++) { /* texts of all lengths, the last ones cut off */
        kymo_begin(&first, KYMO_SQL, text, n, n * 1000, n);
        kymo_add(&first, metrics[0].cell, 3);
        kymo_observe(&first, &metrics[4], n * n * 500, n % 3 + 1);
    }
    kymo_end(&first);
    kymo_begin(&second, KYMO_SECRET, text, 20, 5, 0);
    kymo_begin(&second, KYMO_PLAIN, text, 5, 6, UINT64_MAX);
    kymo_state(&second, KYMO_IDLE_IN_TRANSACTION);
    kymo_add(&first, metrics[1].cell, (uint64_t)-2);
    kymo_set_double(&first, metrics[2].cell, 0.75);
    kymo_set(&second, metrics[3].cell, 17);
    if (kymo_metric_add(&publisher, &late) != 0)
        return 1;
    kymo_add(&second, late.cell, UINT64_MAX);
    kymo_slot_release(&second);
    if (kymo_slot_take_at(&publisher, &second, 2) != 0)
        return 1;
    kymo_begin(&second, KYMO_SQL, "COMMIT", 6, 7, 8);
    puts(publisher.path);
    return 0; /* killed, as it were: it closes nothing */
}
