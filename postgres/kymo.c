/*
 * kymo.c: PostgreSQL says what its backends are doing, and counts what they did, in a file in memory that others read.
 *
 * Each backend has a slot: its current command and state, and cells that only it writes. Nothing is sent, nobody is woken, nothing
 * is locked or allocated while a command runs, and no clock is read but for latencies. docs/postgres.md says what is published;
 * ../include/kymo.h how.
 *
 * A client's command and what runs within it differ by two things: `depth`, which each hook keeps in a local variable and writes
 * back, and the portal that runs, because functions also run where no hook is on the stack: in planning, in parameters of EXECUTE,
 * in deferred triggers. An error unwinds past hooks; the end of the subtransaction that it ends sets `depth` right.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "postgres.h"

/* What PostgreSQL was built with may not be installed here; it lays out its connections the same without. */
#undef ENABLE_GSS
#undef USE_OPENSSL

#include "access/parallel.h"
#include "access/xact.h"
#include "commands/dbcommands.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "libpq/auth.h"
#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "postmaster/postmaster.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/backend_status.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/portal.h"
#include "utils/timestamp.h"

#include "kymo.h"

#if PG_VERSION_NUM < 150000
#error "kymo: PostgreSQL 15 or later is needed"
#endif

PG_MODULE_MAGIC;

void _PG_init(void);

/* ---- What is published ---------------------------------------------------------------------------------------------------- */

enum { SELECT, INSERT, UPDATE, DELETE, UTILITY, OTHER, KINDS };

/* Buckets of latencies: eight for each power of two, from 8 us to 18 minutes. */
#define SUB_BITS 3
#define MIN_EXPONENT 3
#define MAX_EXPONENT 30
#define LATENCY_CELLS KYMO_HISTOGRAM_CELLS(SUB_BITS, MIN_EXPONENT, MAX_EXPONENT)

/* Cells of a slot, in the order of `metrics`. */
enum {
    COMMANDS = 0,
    ROWS = COMMANDS + KINDS,
    NESTED = ROWS + KINDS,
    ERRORS,
    COMMITS,
    ROLLBACKS,
    SESSIONS,
    USAGE,
    USAGE_CELLS = 13,
    LATENCY = USAGE + USAGE_CELLS
};

#define LABELS(...) (const char *const[]) { __VA_ARGS__, NULL }
#define COUNTER(name_, unit_, help_, ...) \
    { .name = name_, .unit = unit_, .help = help_, .labels = __VA_ARGS__, .kind = KYMO_COUNTER }
#define OF_KIND(macro) macro("select"), macro("insert"), macro("update"), macro("delete"), macro("utility"), macro("other")
#define COMMANDS_OF(kind_) COUNTER("commands_total", "", "Commands of clients that began to run.", LABELS("kind", kind_))
#define ROWS_OF(kind_) COUNTER("rows_total", "", "Rows that commands returned or changed.", LABELS("kind", kind_))
#define LATENCY_OF(kind_)                                                                                                     \
    {                                                                                                                         \
        .name = "command_seconds", .unit = "seconds", .help = "From a command's receipt to its end.",                          \
        .labels = LABELS("kind", kind_), .scale = 1e-6, .kind = KYMO_HISTOGRAM, .sub_bits = SUB_BITS,                          \
        .min_exponent = MIN_EXPONENT, .max_exponent = MAX_EXPONENT                                                            \
    }
#define SHARED(action_) COUNTER("shared_blocks_total", "", "Blocks of tables and indexes.", LABELS("action", action_))
#define LOCAL(action_) COUNTER("local_blocks_total", "", "Blocks of temporary tables and their indexes.", LABELS("action", action_))
#define TEMP(action_) COUNTER("temp_blocks_total", "", "Blocks of sorts, hashes and materialized rows.", LABELS("action", action_))
#define TRANSACTIONS(end_) COUNTER("transactions_total", "", "Transactions that ended.", LABELS("end", end_))

static kymo_metric metrics[] = {
    OF_KIND(COMMANDS_OF),
    OF_KIND(ROWS_OF),
    COUNTER("nested_commands_total", "", "Commands that ran within functions, triggers, cursors and other commands.", NULL),
    COUNTER("errors_total", "", "Commands that failed, with those that could not be parsed.", NULL),
    TRANSACTIONS("commit"),
    TRANSACTIONS("rollback"),
    COUNTER("sessions_total", "", "Clients that logged in.", NULL),
    SHARED("hit"),
    SHARED("read"),
    SHARED("dirtied"),
    SHARED("written"),
    LOCAL("hit"),
    LOCAL("read"),
    LOCAL("dirtied"),
    LOCAL("written"),
    TEMP("read"),
    TEMP("written"),
    COUNTER("wal_records_total", "", "Records of the write-ahead log.", NULL),
    COUNTER("wal_full_page_images_total", "", "Whole pages in the write-ahead log.", NULL),
    COUNTER("wal_bytes_total", "bytes", "What was added to the write-ahead log.", NULL),
    OF_KIND(LATENCY_OF),
};

/* The order of `labels` in identify. */
static const char *const slot_labels[] = {"application", "database", "user"};

/* The kind of a plan's command. */
static const uint8 kind_of_operation[] = {
    [CMD_UNKNOWN] = OTHER, [CMD_SELECT] = SELECT, [CMD_UPDATE] = UPDATE,   [CMD_INSERT] = INSERT,
    [CMD_DELETE] = DELETE, [CMD_MERGE] = OTHER,   [CMD_UTILITY] = UTILITY, [CMD_NOTHING] = OTHER,
};

/* ---- Settings ------------------------------------------------------------------------------------------------------------- */

enum { TIMING_OFF, TIMING_SAMPLED, TIMING_ALL };

/* Seconds from the kernel's epoch to PostgreSQL's. */
#define UNIX_EPOCH_OF_POSTGRES ((TimestampTz)(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY)

/* Of so many commands one is timed, by `kymo.timing = sampled`, a power of two; and each that lasts as long as this. */
#define SAMPLE_OF 64
#define SLOW_US 1000

static const struct config_enum_entry timings[] = {
    {"sampled", TIMING_SAMPLED, false},
    {"all", TIMING_ALL, false},
    {"off", TIMING_OFF, false},
    {NULL, 0, false},
};

static bool enabled = true;
static int timing = TIMING_SAMPLED;
static int text_length = KYMO_TEXT_DEFAULT;

/* ---- State ---------------------------------------------------------------------------------------------------------------- */

static kymo_publisher publisher;

/* This backend's place; does nothing in processes without one. */
static kymo_slot slot;
/* Its cells; NULL also in parallel workers, which count nothing: their leader does. */
static uint64 *cells;
/* Whether commands are counted: there are cells, and kymo.enabled is on. */
static bool counting;
/* Whether a slot was asked for. */
static bool attached;
/* Whether the session has begun: what happens before is PostgreSQL's own. */
static bool ready;
/* Whether commands come from a client, and so in portals; not in background workers. */
static bool has_client;

/* Commands that are on the stack. */
static int depth;
/* The innermost subtransaction, by nesting level, that began while no command was on the stack. */
static int outside;
/* The nesting level of the client's EXECUTE while that runs, else 0: the command that it runs counts in its stead. */
static int executing;
/* Whether a command began and its end was not seen. */
static bool open_command;
/* Of background workers alone: where errors were caught when a command came onto the stack; and, while the log may still be told of a
 * failure that was counted, the beginning of its transaction. */
static const sigjmp_buf *handler;
static TimestampTz failed;

/* Of the command that began last: its kind, or KINDS while it is not known, */
static int current_kind = KINDS;
/* how many commands its latency stands for, 0: none unless it is slow, */
static uint32 weight;
/* when it began, 0: it is not timed, */
static TimestampTz started;
/* and when the message that contains it was received. */
static TimestampTz received;

/* Random bits, for samples. */
static uint64 random_bits;
/* What the slot's cells had before this backend, and the sum of its usage when it was published. */
static uint64 usage_before[USAGE_CELLS];
static int64 usage_sum;
/* The name that identify published; each change allocates a new one. */
static const char *published_name;

static ExecutorRun_hook_type next_executor_run;
static ExecutorFinish_hook_type next_executor_finish;
static planner_hook_type next_planner;
static ProcessUtility_hook_type next_process_utility;
static ClientAuthentication_hook_type next_client_authentication;
static shmem_startup_hook_type next_shmem_startup;
static emit_log_hook_type next_emit_log;
static const PQcommMethods *next_methods;
static PQcommMethods methods;

#ifdef KYMO_BENCH_2006
#include "bench_2006.h"
#else
#define BENCH_2006_BEGIN(text, length) ((void)0)
#define BENCH_2006_END() ((void)0)
#define BENCH_2006_OPEN() ((void)0)
#endif

/* ---- A command ------------------------------------------------------------------------------------------------------------ */

/* Says whose slot this is. */
static void identify(void) {
    const Port *const port = MyProcPort;
    const PGPROC *const leader = MyProc->lockGroupLeader;
    const char *labels[lengthof(slot_labels)] = {application_name, NULL, NULL};
    if (port != NULL) {
        labels[1] = port->database_name;
        labels[2] = port->user_name;
        if (!ready)
            labels[0] = port->application_name;
    } else if (IsTransactionState()) {
        labels[1] = get_database_name(MyDatabaseId);
        labels[2] = GetUserNameFromId(GetSessionUserId(), true);
    }
    published_name = application_name;
    kymo_identify(&slot, MyProcPid, leader != NULL && leader != MyProc ? leader->pid : 0, MyStartTimestamp, labels);
}

/* How many commands the latency of the next one stands for; 0: it was not chosen. */
static inline uint32 draw(void) {
    if (likely(timing == TIMING_SAMPLED)) {
        random_bits ^= random_bits << 13;
        random_bits ^= random_bits >> 7;
        random_bits ^= random_bits << 17;
        return random_bits % SAMPLE_OF == 0 ? SAMPLE_OF : 0;
    }
    return timing == TIMING_ALL ? 1 : 0;
}

/* What this backend used: PostgreSQL counts it anyway, parallel workers' included. */
static pg_noinline void publish_usage(void) {
    const BufferUsage *const blocks = &pgBufferUsage;
    const uint64 used[USAGE_CELLS] = {
        blocks->shared_blks_hit, blocks->shared_blks_read,   blocks->shared_blks_dirtied, blocks->shared_blks_written,
        blocks->local_blks_hit,  blocks->local_blks_read,    blocks->local_blks_dirtied,  blocks->local_blks_written,
        blocks->temp_blks_read,  blocks->temp_blks_written,  pgWalUsage.wal_records,      pgWalUsage.wal_fpi,
        pgWalUsage.wal_bytes};
    for (int n = 0; n < USAGE_CELLS; n++)
        KYMO_STORE(cells + USAGE + n, usage_before[n] + used[n]);
}

/* Changes whenever the usage does. */
static inline int64 sum_of_usage(void) {
    const BufferUsage *const blocks = &pgBufferUsage;
    return blocks->shared_blks_hit + blocks->shared_blks_read + blocks->shared_blks_dirtied + blocks->shared_blks_written +
           blocks->local_blks_hit + blocks->local_blks_read + blocks->local_blks_dirtied + blocks->local_blks_written +
           blocks->temp_blks_read + blocks->temp_blks_written + pgWalUsage.wal_records;
}

/* Whether the command outlasts two ticks of the kernel's clock, and maybe one: to ask for the last tick reads no hardware's clock. */
static bool outlasts_ticks(void) {
    struct timespec tick;
    clock_gettime(CLOCK_REALTIME_COARSE, &tick);
    return ((TimestampTz)tick.tv_sec - UNIX_EPOCH_OF_POSTGRES) * USECS_PER_SEC + tick.tv_nsec / 1000 > started;
}

/* The command that began last has ended then; 0: nobody asked a clock. A slow one stands for itself alone, also if it was chosen. */
static pg_noinline void publish_latency(TimestampTz end) {
    const bool slow = end != 0 ? end - started >= SLOW_US : outlasts_ticks();
    const uint32 commands = slow ? 1 : weight;
    if (commands == 0)
        return;
    if (end == 0)
        end = GetCurrentTimestamp();
    kymo_cells_observe(cells + LATENCY + current_kind * LATENCY_CELLS, SUB_BITS, MIN_EXPONENT, MAX_EXPONENT,
                       end > started ? (uint64)(end - started) : 0, commands);
}

/* The command that began last has ended, at that time or, if it is 0, now. */
static inline void end_command(TimestampTz end) {
    const int64 sum = sum_of_usage();
    open_command = false;
    if (started != 0 && current_kind < KINDS && (unlikely(weight != 0) || end == 0 || unlikely(end - started >= SLOW_US)))
        publish_latency(end);
    if (sum != usage_sum) {
        usage_sum = sum;
        publish_usage();
    }
    BENCH_2006_END();
}

/* A command of a client begins; its text is a part of `source`. */
static void begin_command(const PlannedStmt *plan, const char *source, uint32 kind_of_text) {
    const TimestampTz stamp = GetCurrentStatementStartTimestamp();
    /* A later command of the same message begins where the one before it ended. */
    const TimestampTz begins = likely(stamp != received) || timing == TIMING_OFF ? stamp : GetCurrentTimestamp();
    const char *text = source;
    size_t bytes;
    if (unlikely(open_command))
        end_command(begins != stamp ? begins : 0);
    if (unlikely(application_name != published_name))
        identify();
    if (plan->stmt_location > 0)
        text += plan->stmt_location; /* negative: unknown; then it is all */
    bytes = plan->stmt_len > 0 ? (size_t)plan->stmt_len : strlen(text);
    while (bytes > 0 && (unsigned char)*text <= ' ') {
        text++;
        bytes--;
    }
    kymo_begin(&slot, kind_of_text, text, bytes, (uint64)stamp, plan->queryId);
    BENCH_2006_BEGIN(text, bytes);
    open_command = true;
    current_kind = KINDS;
    handler = PG_exception_stack;
    failed = 0;
    weight = draw();
    started = likely(timing != TIMING_OFF) ? begins : 0;
    received = stamp;
}

/* The command that began is of this kind, and runs. */
static inline void count_command(int kind) {
    current_kind = kind;
    kymo_cell_add(cells + COMMANDS + kind, 1);
}

static inline void count(int cell, uint64 amount) {
    if (cells != NULL)
        kymo_cell_add(cells + cell, amount);
}

/* A command failed. */
static void count_error(void) {
    if (counting)
        kymo_cell_add(cells + ERRORS, 1);
}

/* No command is on the stack, however the last one was left. */
static inline void forget_stack(void) {
    depth = 0;
    executing = 0;
}

/* ---- A backend's life ----------------------------------------------------------------------------------------------------- */

/* The process ends, maybe within a command. */
static void leave(int code, Datum argument) {
    if (code != 0 && (has_client ? open_command : depth != 0))
        count_error();
    if (open_command)
        end_command(0);
    counting = false;
    cells = NULL;
    kymo_slot_release(&slot);
}

/* The number of this backend, from 0; negative if it has none. */
static int backend_number(void) {
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyBackendId - 1;
#endif
}

/* ---- Background workers: no portal tells their commands from functions' ---------------------------------------------------- */

/* Triggers run here. */
static void executor_finish(QueryDesc *query) {
    const int saved = depth;
    depth = saved + 1;
    if (next_executor_finish)
        next_executor_finish(query);
    else
        standard_ExecutorFinish(query);
    depth = saved;
}

/* Functions that are constant run here. */
static PlannedStmt *plan_query(Query *query, const char *text, int options, ParamListInfo parameters) {
    const int saved = depth;
    PlannedStmt *plan;
    if (depth == 0)
        handler = PG_exception_stack;
    depth = saved + 1;
    plan = next_planner ? next_planner(query, text, options, parameters) : standard_planner(query, text, options, parameters);
    depth = saved;
    return plan;
}

/* A worker tells nobody but the log that its command failed, if the log takes it, before or after it ends the transaction. */
static void emit_log(ErrorData *error) {
    if (error->elevel == ERROR) {
        if (failed != GetCurrentTransactionStartTimestamp())
            count_error();
        failed = 0;
        forget_stack();
    }
    if (next_emit_log)
        next_emit_log(error);
}

/* A worker's transaction or subtransaction, at whose beginning no command was on the stack, is undone. */
static void undone_in_worker(void) {
    if (depth != 0 || executing != 0) {
        count_error();
        failed = GetCurrentTransactionStartTimestamp();
    }
    forget_stack();
}

static void watch_worker(void) {
    next_executor_finish = ExecutorFinish_hook;
    ExecutorFinish_hook = executor_finish;
    next_planner = planner_hook;
    planner_hook = plan_query;
    next_emit_log = emit_log_hook;
    emit_log_hook = emit_log;
}

/* ---- Clients -------------------------------------------------------------------------------------------------------------- */

/* When the server noted that this backend waits, as it does before it says so unless track_activities is off; 0 if it did not. */
static inline TimestampTz rests_since(void) {
    const PgBackendStatus *const noted = MyBEEntry;
    if (unlikely(noted == NULL || noted->st_state == STATE_RUNNING || noted->st_state_start_timestamp < started))
        return 0;
    return noted->st_state_start_timestamp;
}

/* The backend waits for its client, who learns so in a moment: what the command did is published before that. */
static inline void rest(void) {
    char status;
    forget_stack();
    if (open_command)
        end_command(rests_since());
    if (unlikely(!ready)) {
        if (IsTransactionState())
            return; /* a notice while the session is made */
        ready = true;
        count(SESSIONS, 1);
        identify();
    }
    status = TransactionBlockStatusCode();
    kymo_state(&slot, !enabled        ? KYMO_NONE
                      : status == 'I' ? KYMO_IDLE
                      : status == 'T' ? KYMO_IDLE_IN_TRANSACTION
                                      : KYMO_IDLE_IN_ABORTED_TRANSACTION);
}

/* Each answer ends with a flush, and no other one happens while there is no current text. */
static int flush(void) {
    if (debug_query_string == NULL)
        rest();
    return next_methods->flush();
}

/* Each error that unwinds to PostgreSQL's main loop comes here, whether it is logged or not, and the client is told. */
static void comm_reset(void) {
    count_error();
    forget_stack();
    next_methods->comm_reset();
}

static void watch_client(void) {
    next_methods = PqCommMethods;
    methods = *next_methods;
    methods.flush = flush;
    methods.comm_reset = comm_reset;
    PqCommMethods = &methods;
}

/* Takes the slot of this backend, if it is of a kind that runs commands. */
static pg_noinline void attach(void) {
    attached = true;
    if (MyBackendType != B_BACKEND && MyBackendType != B_BG_WORKER && IsPostmasterEnvironment)
        return;
    if (backend_number() < 0 || kymo_slot_take_at(&publisher, &slot, (uint32)backend_number()) != 0)
        return;
    on_shmem_exit(leave, 0);
    identify();
    has_client = MyProcPort != NULL || !IsPostmasterEnvironment;
    if (IsParallelWorker())
        return;
    if (has_client)
        watch_client();
    else
        watch_worker();
    cells = kymo_cells(&slot);
    counting = enabled;
    for (int n = 0; n < USAGE_CELLS; n++)
        usage_before[n] = KYMO_LOAD(cells + USAGE + n);
    random_bits = ((uint64)MyProcPid << 32 ^ (uint64)MyStartTimestamp) * UINT64CONST(0x9E3779B97F4A7C15) | 1;
    ready = MyProcPort == NULL;
}

static void client_authentication(Port *port, int status) {
    if (next_client_authentication)
        next_client_authentication(port, status);
    if (status == STATUS_OK && !am_walsender)
        attach();
}

/* ---- Hooks ---------------------------------------------------------------------------------------------------------------- */

/* Whether a background worker runs it itself: nothing is on the stack, nor a trigger, as while a transaction ends. */
static pg_noinline bool is_workers(void) { return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, 0)) == 0; }

/* Whether the plan is the portal's own, and the portal a client's or EXECUTE's. The portals that functions open, and cursors, are
 * shown, return rows, and were not asked for a format of these. */
static inline bool is_of_portal(const QueryDesc *query) {
    const Portal portal = ActivePortal;
    if (portal == NULL || (portal->queryDesc != query && !list_member_ptr(portal->stmts, query->plannedstmt)))
        return false;
    return !portal->visible || portal->formats != NULL || portal->tupDesc == NULL;
}

/* Whether a plan is a client's command or one that a rule added to it, not what a function, a trigger or another command runs. */
static inline bool is_clients(const QueryDesc *query) {
    if (depth != 0)
        return false;
    return likely(has_client) || executing ? is_of_portal(query) : is_workers();
}

/* A parallel worker does not know which part of a message its text is: the others may contain a password. */
static void run_in_worker(const char *text) {
    const uint32 kind = strcasestr(text, "password") != NULL ? KYMO_SECRET : KYMO_SQL;
    kymo_begin(&slot, kind, text, strlen(text), (uint64)GetCurrentStatementStartTimestamp(), 0);
}

/* Where nothing is counted yet: whether it is from now on. */
static pg_noinline bool comes_to_count(const char *text) {
    if (enabled && !attached)
        attach();
    if (enabled && !counting && depth == 0 && slot.head != NULL)
        run_in_worker(text);
    return counting;
}

/* A command that rules replaced by others, of another kind: it begins with the first of these. Of any other rule's command, nothing. */
static pg_noinline void begin_replaced(const PlannedStmt *plan, const char *source) {
    const Portal portal = ActivePortal;
    const ListCell *cell;
    if (portal == NULL || plan != linitial(portal->stmts))
        return;
    foreach (cell, portal->stmts)
        if (lfirst_node(PlannedStmt, cell)->canSetTag)
            return;
    if (!executing)
        begin_command(plan, source, KYMO_SQL);
    count_command(portal->commandTag == CMDTAG_INSERT   ? INSERT
                  : portal->commandTag == CMDTAG_UPDATE ? UPDATE
                  : portal->commandTag == CMDTAG_DELETE ? DELETE
                                                        : OTHER);
}

/* A client's plan runs, or goes on where it was suspended. The kind of its command; KINDS if a rule added it. */
static inline int run_clients(const QueryDesc *query) {
    const PlannedStmt *const plan = query->plannedstmt;
    const int kind = kind_of_operation[query->operation];
    if (unlikely(!plan->canSetTag)) {
        begin_replaced(plan, query->sourceText);
        count(NESTED, 1);
        return KINDS;
    }
    if (!executing)
        begin_command(plan, query->sourceText, KYMO_SQL);
    if (!query->already_executed)
        count_command(kind);
    return kind;
}

#if PG_VERSION_NUM >= 180000
#define RUN_ONCE
#define RUN_ONCE_VALUE
#else
#define RUN_ONCE , bool execute_once
#define RUN_ONCE_VALUE , execute_once
#endif

static void executor_run(QueryDesc *query, ScanDirection direction, uint64 rows RUN_ONCE) {
    const int saved = depth;
    int kind = KINDS;
    if (likely(counting) || comes_to_count(query->sourceText)) {
        if (is_clients(query))
            kind = run_clients(query);
        else if (!query->already_executed)
            count(NESTED, 1);
    }
    depth = saved + 1;
    if (next_executor_run)
        next_executor_run(query, direction, rows RUN_ONCE_VALUE);
    else
        standard_ExecutorRun(query, direction, rows RUN_ONCE_VALUE);
    depth = saved;
    if (kind != KINDS)
        kymo_cell_add(cells + ROWS + kind, query->estate->es_processed);
}

/* Whether a command's text may contain a password. */
static bool has_secret(const Node *command) {
    const List *options = NIL;
    const ListCell *cell;
    switch (nodeTag(command)) {
    case T_CreateUserMappingStmt:
    case T_AlterUserMappingStmt:
    case T_CreateForeignServerStmt:
    case T_AlterForeignServerStmt:
    case T_CreateSubscriptionStmt:
    case T_AlterSubscriptionStmt:
        return true;
    case T_CreateRoleStmt:
        options = ((const CreateRoleStmt *)command)->options;
        break;
    case T_AlterRoleStmt:
        options = ((const AlterRoleStmt *)command)->options;
        break;
    default:
        return false;
    }
    foreach (cell, options)
        if (strcmp(lfirst_node(DefElem, cell)->defname, "password") == 0)
            return true;
    return false;
}

/* A utility command begins. Whether it is a client's. */
static bool begin_utility(const PlannedStmt *plan, const char *source, ProcessUtilityContext context) {
    bool clients = depth == 0 && (context == PROCESS_UTILITY_TOPLEVEL || (!has_client && !executing && is_workers()));
    if (clients && unlikely(!plan->canSetTag)) {
        begin_replaced(plan, source);
        clients = false;
    }
    if (!clients) {
        if (context != PROCESS_UTILITY_SUBCOMMAND)
            count(NESTED, 1);
        return false;
    }
    begin_command(plan, source, has_secret(plan->utilityStmt) ? KYMO_SECRET : KYMO_SQL);
    if (!IsA(plan->utilityStmt, ExecuteStmt))
        count_command(UTILITY);
    return true;
}

static void process_utility(PlannedStmt *plan, const char *source, bool read_only, ProcessUtilityContext context, ParamListInfo parameters,
                            QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion) {
    const int saved = depth;
    const bool clients = (likely(counting) || comes_to_count(source)) && begin_utility(plan, source, context);
    const bool execute = clients && IsA(plan->utilityStmt, ExecuteStmt);
    /* What EXECUTE runs is at the depth of EXECUTE. */
    if (execute)
        executing = GetCurrentTransactionNestLevel();
    else
        depth = saved + 1;
    if (next_process_utility)
        next_process_utility(plan, source, read_only, context, parameters, environment, receiver, completion);
    else
        standard_ProcessUtility(plan, source, read_only, context, parameters, environment, receiver, completion);
    depth = saved;
    if (execute)
        executing = 0;
    else if (clients && completion != NULL)
        count(ROWS + UTILITY, completion->nprocessed);
}

/* Whether an error has left the command that came onto the stack: its handler, or one further out, has caught that. */
static bool was_left(void) { return PG_exception_stack == NULL || PG_exception_stack > handler; }

/* A background worker's command ends with its transaction, unless a procedure ends that, which goes on. */
static void transaction_ended(bool committed) {
    if (counting && ready)
        count(committed ? COMMITS : ROLLBACKS, 1);
    if (likely(has_client) || proc_exit_inprogress)
        return;
    if (!committed && was_left())
        undone_in_worker();
    if (depth != 0)
        return;
    if (open_command)
        end_command(0);
    kymo_state(&slot, KYMO_IDLE);
}

static void transaction_event(XactEvent event, void *argument) {
    if (slot.head == NULL)
        return;
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
        transaction_ended(true);
    else if (event == XACT_EVENT_ABORT)
        transaction_ended(false);
}

/* Whoever catches an error and goes on undoes a subtransaction: commands that came onto the stack within it have left it. */
static void subtransaction_event(SubXactEvent event, SubTransactionId own, SubTransactionId parent, void *argument) {
    const int level = GetCurrentTransactionNestLevel();
    if (slot.head == NULL)
        return;
    if (event == SUBXACT_EVENT_START_SUB && depth == 0)
        outside = level;
    if (event == SUBXACT_EVENT_ABORT_SUB && level <= outside) {
        /* Not where a parameter of EXECUTE caught it. */
        if (unlikely(!has_client) && (executing == 0 || level <= executing))
            undone_in_worker();
        depth = 0;
    }
    if (event == SUBXACT_EVENT_ABORT_SUB && level <= executing)
        executing = 0;
    if ((event == SUBXACT_EVENT_ABORT_SUB || event == SUBXACT_EVENT_COMMIT_SUB) && level <= outside)
        outside = level - 1;
}

/* ---- Start of the server -------------------------------------------------------------------------------------------------- */

static void close_publisher(int code, Datum argument) { kymo_close(&publisher); }

/* Adds the server's name, if it has one, and its port to the labels of each metric: two servers of one user have series of their own. */
static void name_server(void) {
    static char port[12];
    snprintf(port, sizeof port, "%d", PostPortNumber);
    for (size_t n = 0; n < lengthof(metrics); n++) {
        const char *const *const own = metrics[n].labels;
        const char **labels;
        size_t count = 0;
        while (own != NULL && own[count] != NULL)
            count++;
        labels = MemoryContextAllocZero(TopMemoryContext, (count + 5) * sizeof *labels);
        if (count > 0)
            memcpy(labels, own, count * sizeof *labels);
        if (cluster_name != NULL && cluster_name[0] != '\0') {
            labels[count++] = "server";
            labels[count++] = cluster_name;
        }
        labels[count++] = "port";
        labels[count] = port;
        metrics[n].labels = labels;
    }
}

/* Makes the file. After a crash of a backend the server comes here again, and goes on with the same file: no count is lost. */
static void shmem_startup(void) {
    static bool tried;
    kymo_config config = {
        .name = "postgresql",
        .slots = (uint32_t)MaxBackends,
        .text_bytes = (uint32_t)text_length,
        .metrics = metrics,
        .n_metrics = lengthof(metrics),
        .slot_labels = slot_labels,
        .n_slot_labels = lengthof(slot_labels),
        .stamp_clock = KYMO_STAMP_POSTGRES,
    };
    if (next_shmem_startup)
        next_shmem_startup();
    if (tried) {
        kymo_release_all(&publisher);
        return;
    }
    tried = true;
    name_server();
    if (kymo_open(&publisher, &config) != 0) {
        ereport(LOG, (errmsg("kymo: %s", publisher.why)));
        return;
    }
    Assert(metrics[LATENCY].cell == LATENCY);
    on_proc_exit(close_publisher, 0);
    ereport(LOG, (errmsg("kymo: publishing in %s", publisher.path)));
    BENCH_2006_OPEN();
}

static void assign_enabled(bool value, void *extra) { counting = value && cells != NULL; }

static void define_settings(void) {
    DefineCustomBoolVariable("kymo.enabled", "Publishes what backends do.", NULL, &enabled, true, PGC_SUSET, 0, NULL, assign_enabled, NULL);
    DefineCustomEnumVariable("kymo.timing", "Which commands are timed.", "Slow ones, and of the others one of 64, chosen at random; all; or none.", &timing, TIMING_SAMPLED,
                             timings, PGC_SUSET, 0, NULL, NULL, NULL);
    DefineCustomIntVariable("kymo.text_length", "Bytes of a command's text that are published.", NULL, &text_length, KYMO_TEXT_DEFAULT, 64,
                            KYMO_TEXT_MAX, PGC_POSTMASTER, GUC_UNIT_BYTE, NULL, NULL, NULL);
    MarkGUCPrefixReserved("kymo");
}

void _PG_init(void) {
    if (!process_shared_preload_libraries_in_progress) {
        ereport(WARNING, (errmsg("kymo does nothing: it must be loaded by shared_preload_libraries")));
        return;
    }
    define_settings();
    next_shmem_startup = shmem_startup_hook;
    shmem_startup_hook = shmem_startup;
    next_client_authentication = ClientAuthentication_hook;
    ClientAuthentication_hook = client_authentication;
    next_executor_run = ExecutorRun_hook;
    ExecutorRun_hook = executor_run;
    next_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = process_utility;
    RegisterXactCallback(transaction_event, NULL);
    RegisterSubXactCallback(subtransaction_event, NULL);
}
