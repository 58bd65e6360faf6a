/*
 * failing_worker.c: a background worker of PostgreSQL whose commands fail. It catches each error, as schedulers do: it tells the log
 * before or after it ends the transaction, or not at all.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "tcop/cmdtag.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

void _PG_init(void);
PGDLLEXPORT void failing_worker(Datum);

#define FAILS "SELECT 1 / (relnatts - relnatts) FROM pg_class"

enum report { BEFORE, AFTER, NEVER };

static void begin(void) {
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    SPI_connect();
    PushActiveSnapshot(GetTransactionSnapshot());
}

static void commit(void) {
    SPI_finish();
    PopActiveSnapshot();
    CommitTransactionCommand();
}

/* A command that fails, in a transaction of its own. */
static void fail(const char *text, enum report report) {
    const MemoryContext context = CurrentMemoryContext;
    PG_TRY();
    {
        begin();
        SPI_execute(text, false, 0);
        commit();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        if (report == BEFORE)
            EmitErrorReport();
        if (report == AFTER)
            AbortCurrentTransaction();
        if (report == AFTER)
            EmitErrorReport();
        FlushErrorState();
        if (report != AFTER)
            AbortCurrentTransaction();
    }
    PG_END_TRY();
}

/* A command that fails in a subtransaction, and one after it that does not. */
static void fail_within(void) {
    const MemoryContext context = CurrentMemoryContext;
    const ResourceOwner owner = CurrentResourceOwner;
    BeginInternalSubTransaction(NULL);
    PG_TRY();
    {
        SPI_execute(FAILS, false, 0);
        ReleaseCurrentSubTransaction();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    SPI_execute("SELECT 1", false, 0);
}

/* Transactions that end within a command that does not fail: it needs a portal. */
static void go_on(void) {
    static const char text[] = "DO 'BEGIN PERFORM 1; ROLLBACK; PERFORM 2; COMMIT; PERFORM 3; END'";
    List *commands;
    Portal portal;
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    MemoryContextSwitchTo(TopMemoryContext);
    commands = pg_analyze_and_rewrite_fixedparams(linitial(pg_parse_query(text)), text, NULL, 0, NULL);
    portal = CreatePortal("", true, true);
    PortalDefineQuery(portal, NULL, text, CMDTAG_DO, pg_plan_queries(commands, text, 0, NULL), NULL);
    PortalStart(portal, NULL, 0, InvalidSnapshot);
#if PG_VERSION_NUM >= 180000
    PortalRun(portal, FETCH_ALL, true, None_Receiver, None_Receiver, NULL);
#else
    PortalRun(portal, FETCH_ALL, true, true, None_Receiver, None_Receiver, NULL);
#endif
    PortalDrop(portal, false);
    CommitTransactionCommand();
}

void failing_worker(Datum argument) {
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection("postgres", NULL, 0);
    for (int n = 0; n < 5; n++)
        fail(FAILS, BEFORE);
    for (int n = 0; n < 3; n++)
        fail(FAILS, AFTER);
    for (int n = 0; n < 2; n++)
        fail(FAILS, NEVER);
    fail("SELECT 1 / 0", NEVER);
    fail("SELCT", BEFORE);
    begin();
    fail_within();
    commit();
    go_on();
    begin();
    SPI_execute("SELECT 'it has done all'", false, 0);
    commit();
    for (;;)
        WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, 0);
}

void _PG_init(void) {
    BackgroundWorker worker = {
        .bgw_name = "failing worker",
        .bgw_type = "failing worker",
        .bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
        .bgw_start_time = BgWorkerStart_RecoveryFinished,
        .bgw_restart_time = BGW_NEVER_RESTART,
        .bgw_library_name = "failing_worker",
        .bgw_function_name = "failing_worker",
    };
    RegisterBackgroundWorker(&worker);
}
