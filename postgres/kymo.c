/*
 * kymo.c: PostgreSQL says what its backends are doing, and counts what they did, in a file in memory that others read.
 *
 * Each backend has a slot: its current command and state, and cells that only it writes. Nothing is sent, nobody is woken, nothing
 * is locked or allocated while a command runs, and no clock is read but for latencies. docs/postgres.md says what is published;
 * ../include/kymo.h how.
 *
 * A client's command and what runs within it differ by two things: `depth`, which each hook keeps in a local variable and writes
 * back (an error unwinds past the hook: then whoever catches it writes back its own), and the portal that runs, because functions
 * also run where no hook is on the stack, as in planning and in deferred triggers.
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
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
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

/* Of so many commands one is timed, by `kymo.timing = sampled`. A power of two. */
#define SAMPLE_OF 64

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
/* Whether EXECUTE is: the command that it runs counts in its stead. */
static bool executing;
/* Whether a command began and its end was not seen. */
static bool open_command;
/* Whether the current message's error was counted. */
static bool failed;

/* Of the command that began last: its kind, or KINDS while it is not known, */
static int current_kind = KINDS;
/* how many commands its latency stands for, 0: it is not timed, */
static uint32 weight;
/* when it began, */
static TimestampTz started;
/* and when the message that contains it was received. */
static TimestampTz received;
/* When the command before it ended, if that was timed and ended as this one began; else 0. */
static TimestampTz ended;

/* Random bits, for samples. */
static uint64 random_bits;
/* What the slot's cells had before this backend, and the sum of its usage when it was published. */
static uint64 usage_before[USAGE_CELLS];
static int64 usage_sum;
/* The name that identify published; each change allocates a new one. */
static const char *published_name;

static ExecutorRun_hook_type next_executor_run;
static ExecutorFinish_hook_type next_executor_finish;
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

/* How many commands the latency of the next one stands for; 0: it is not timed. */
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

static pg_noinline void publish_latency(void) {
    ended = GetCurrentTimestamp();
    if (current_kind < KINDS)
        kymo_cells_observe(cells + LATENCY + current_kind * LATENCY_CELLS, SUB_BITS, MIN_EXPONENT, MAX_EXPONENT,
                           ended > started ? (uint64)(ended - started) : 0, weight);
}

/* The command that began last has ended. */
static inline void end_command(void) {
    const int64 sum = sum_of_usage();
    open_command = false;
    if (unlikely(weight != 0))
        publish_latency();
    if (sum != usage_sum) {
        usage_sum = sum;
        publish_usage();
    }
    BENCH_2006_END();
}

/* Another command follows it in the same message, or before its transaction ends. */
static pg_noinline void end_before_next(void) {
    ended = 0;
    end_command();
}

/* A command of a client begins; its text is a part of `source`. */
static void begin_command(const PlannedStmt *plan, const char *source, uint32 kind_of_text) {
    const TimestampTz stamp = GetCurrentStatementStartTimestamp();
    const char *text = source;
    size_t bytes;
    if (unlikely(open_command))
        end_before_next();
    else
        ended = 0;
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
    weight = draw();
    if (unlikely(weight != 0)) {
        /* A later command of the same message begins where the one before it ended. */
        started = stamp != received ? stamp : ended != 0 ? ended : GetCurrentTimestamp();
    }
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

/* The client's command failed. */
static void count_error(void) {
    if (!failed)
        count(ERRORS, 1);
    failed = true;
}

/* No command is on the stack, however the last one was left. */
static inline void forget_stack(void) {
    depth = 0;
    executing = false;
    if (open_command)
        end_command();
}

/* ---- A backend's life ----------------------------------------------------------------------------------------------------- */

static void leave(int code, Datum argument) {
    if (open_command)
        end_command();
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

/* Triggers run here. Clients' commands are known by their portal. */
static void executor_finish(QueryDesc *query) {
    const int saved = depth;
    depth = saved + 1;
    if (next_executor_finish)
        next_executor_finish(query);
    else
        standard_ExecutorFinish(query);
    depth = saved;
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
    if (!has_client) {
        next_executor_finish = ExecutorFinish_hook;
        ExecutorFinish_hook = executor_finish;
    }
    if (IsParallelWorker())
        return;
    cells = kymo_cells(&slot);
    counting = enabled;
    for (int n = 0; n < USAGE_CELLS; n++)
        usage_before[n] = KYMO_LOAD(cells + USAGE + n);
    random_bits = ((uint64)MyProcPid << 32 ^ (uint64)MyStartTimestamp) * UINT64CONST(0x9E3779B97F4A7C15) | 1;
    ready = MyProcPort == NULL;
}

/* The backend waits for its client, who learns so in a moment: what the command did is published before that. */
static inline void rest(void) {
    char status;
    forget_stack();
    failed = false;
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

static void client_authentication(Port *port, int status) {
    if (next_client_authentication)
        next_client_authentication(port, status);
    if (status != STATUS_OK || am_walsender)
        return;
    attach();
    if (cells == NULL)
        return;
    next_methods = PqCommMethods;
    methods = *next_methods;
    methods.flush = flush;
    PqCommMethods = &methods;
}

/* ---- Hooks ---------------------------------------------------------------------------------------------------------------- */

/*
 * Whether a plan is a client's command, not what a function, a trigger or another command runs. A client's portal has no name, or
 * the text of the current message; those that functions open have other names and other texts.
 */
static inline bool is_clients(const QueryDesc *query) {
    const Portal portal = ActivePortal;
    if (depth != 0 || !query->plannedstmt->canSetTag)
        return false;
    if (unlikely(!has_client))
        return true;
    if (portal == NULL || portal->sourceText != query->sourceText)
        return false;
    return executing || portal->name[0] == '\0' ||
           (debug_query_string != NULL && strcmp(portal->sourceText, debug_query_string) == 0);
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

/* A client's plan runs, or goes on where it was suspended. The kind of its command. */
static inline int run_clients(const QueryDesc *query) {
    const PlannedStmt *const plan = query->plannedstmt;
    const int kind = kind_of_operation[query->operation];
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

/* A utility command begins. Whether it is a client's, and counts as one itself. */
static bool begin_utility(const PlannedStmt *plan, const char *source, ProcessUtilityContext context) {
    const bool clients = depth == 0 && (context == PROCESS_UTILITY_TOPLEVEL || executing || !has_client);
    if (!clients) {
        if (context != PROCESS_UTILITY_SUBCOMMAND)
            count(NESTED, 1);
        return false;
    }
    if (!executing)
        begin_command(plan, source, has_secret(plan->utilityStmt) ? KYMO_SECRET : KYMO_SQL);
    if (IsA(plan->utilityStmt, ExecuteStmt))
        return false;
    count_command(UTILITY);
    return true;
}

static void process_utility(PlannedStmt *plan, const char *source, bool read_only, ProcessUtilityContext context, ParamListInfo parameters,
                            QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion) {
    const int saved = depth;
    const bool saved_executing = executing;
    const bool execute = depth == 0 && IsA(plan->utilityStmt, ExecuteStmt);
    const bool counts = (likely(counting) || comes_to_count(source)) && begin_utility(plan, source, context);
    /* What EXECUTE runs is at the depth of EXECUTE. */
    depth = execute ? saved : saved + 1;
    executing = execute;
    if (next_process_utility)
        next_process_utility(plan, source, read_only, context, parameters, environment, receiver, completion);
    else
        standard_ProcessUtility(plan, source, read_only, context, parameters, environment, receiver, completion);
    depth = saved;
    executing = saved_executing;
    if (counts && completion != NULL)
        count(ROWS + UTILITY, completion->nprocessed);
}

/* Whether the server's log does not contain errors, so that emit_log does not see them. */
static bool log_is_blind(void) { return log_min_messages > ERROR || log_min_messages == LOG; }

/* An error unwound to PostgreSQL's main loop, which has forgotten the current text. */
static void unwound(void) {
    if (log_is_blind())
        count_error();
    failed = false;
    forget_stack();
}

/*
 * The command of a transaction of its own ends with it. COMMIT and ROLLBACK within a procedure end nothing: the procedure is on
 * the stack, and there is a current text. Background workers have no main loop that could be known: their transactions end all.
 */
static void transaction_ended(bool committed) {
    if (counting && ready)
        count(committed ? COMMITS : ROLLBACKS, 1);
    if (unlikely(!has_client)) {
        forget_stack();
        kymo_state(&slot, KYMO_IDLE);
    } else if (unlikely(!committed) && debug_query_string == NULL) {
        unwound();
    } else if (depth == 0 && open_command) {
        end_command();
    }
}

static void transaction_event(XactEvent event, void *argument) {
    if (slot.head == NULL)
        return;
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
        transaction_ended(true);
    else if (event == XACT_EVENT_ABORT)
        transaction_ended(false);
}

static void subtransaction_event(SubXactEvent event, SubTransactionId own, SubTransactionId parent, void *argument) {
    if (event == SUBXACT_EVENT_ABORT_SUB && debug_query_string == NULL && has_client)
        unwound();
}

/* Sees each error that is not caught, also those that no transaction ends by. */
static void emit_log(ErrorData *error) {
    if (error->elevel >= ERROR && enabled && (error->elevel == ERROR || open_command))
        count_error();
    if (next_emit_log)
        next_emit_log(error);
}

/* ---- Start of the server -------------------------------------------------------------------------------------------------- */

static void close_publisher(int code, Datum argument) { kymo_close(&publisher); }

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
    DefineCustomEnumVariable("kymo.timing", "Which commands are timed.", "One of 64, chosen at random; all; or none.", &timing, TIMING_SAMPLED,
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
    next_emit_log = emit_log_hook;
    emit_log_hook = emit_log;
    RegisterXactCallback(transaction_event, NULL);
    RegisterSubXactCallback(subtransaction_event, NULL);
}
