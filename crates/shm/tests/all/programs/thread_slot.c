/* A thread ends without giving back its slot, and its memory goes, as a runtime's does; then the process forks, and closes. */
#include "kymo.h"
#include <sys/wait.h>

static kymo_metric metrics[] = {{.name = "n_total", .kind = KYMO_COUNTER}};
static kymo_publisher publisher;

static void *run(void *nothing) {
    kymo_slot *const slot = (kymo_slot *)calloc(1, sizeof *slot);
    if (slot == NULL || kymo_slot_take(&publisher, slot) != 0)
        exit(1);
    kymo_add(slot, 0, 1);
    free(slot);
    return nothing;
}

int main(void) {
    kymo_config config = {0};
    kymo_slot kept = {0}, other = {0};
    pthread_t thread;
    pid_t child;
    int status;
    config.name = "threads";
    config.slots = 8;
    config.metrics = metrics;
    config.n_metrics = 1;
    if (kymo_open(&publisher, &config) != 0 || kymo_slot_take(&publisher, &kept) != 0) {
        puts(publisher.why);
        return 1;
    }
    if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    child = fork();
    if (child == 0)
        _exit(kymo_cells(&kept) != NULL || kymo_slot_take(&publisher, &other) != 0 || other.index != 2);
    if (waitpid(child, &status, 0) != child || status != 0 || kymo_cells(&kept) == NULL)
        return 2;
    kymo_close(&publisher);
    if (kymo_cells(&kept) != NULL)
        return 3;
    kymo_add(&kept, 0, 1);
    kymo_end(&kept);
    if (kymo_open(&publisher, &config) != 0 || kymo_cells(&kept) != NULL)
        return 4;
    kymo_add(&kept, 0, 1);
    kymo_slot_release(&kept);
    kymo_close(&publisher);
    puts("done");
    return 0;
}
