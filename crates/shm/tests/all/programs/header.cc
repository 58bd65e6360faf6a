// Calls what there is, from C++.
#include "kymo.h"

static kymo_publisher publisher;
static kymo_slot slot;

int main() {
    kymo_metric metrics[2] = {};
    metrics[0].name = "n_total";
    metrics[0].kind = KYMO_COUNTER;
    metrics[1].name = "took";
    metrics[1].kind = KYMO_HISTOGRAM;
    metrics[1].max_exponent = 10;
    kymo_config config = {};
    config.name = "from C++";
    config.slots = 2;
    config.metrics = metrics;
    config.n_metrics = 1;
    if (kymo_open(&publisher, &config) != 0 || kymo_metric_add(&publisher, &metrics[1]) == 0)
        return 1;
    if (kymo_slot_take(&publisher, &slot) != 0 && kymo_slot_take_at(&publisher, &slot, 1) != 0)
        return 1;
    kymo_identify(&slot, 1, 0, 0, nullptr);
    kymo_begin(&slot, KYMO_PLAIN, "text", 4, 0, 0);
    kymo_add(&slot, metrics[0].cell, 1);
    kymo_set(&slot, metrics[0].cell, 1);
    kymo_set_double(&slot, metrics[0].cell, 1);
    kymo_observe(&slot, &metrics[1], 1, 1);
    kymo_end(&slot);
    kymo_slot_release(&slot);
    kymo_release_ended(&publisher, 0);
    kymo_release_all(&publisher);
    kymo_close(&publisher);
    return 0;
}
