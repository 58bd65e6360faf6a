//! Every limit of kymo, in one place. Hitting one is counted, never silent.

/// Longest text read from one kernel file, in bytes.
pub const TEXT_MAX: usize = 16 << 20;
/// Longest text recorded; a longer one is a failed read (EFBIG). Its template, at worst, is less
/// than [`TEXT_MAX`].
pub const TEXT_RECORDED_MAX: usize = 8 << 20;
/// Longest command line, cgroup path or program name kept of a process.
pub const IDENTITY_MAX: usize = 64 << 10;
/// Bytes of words after which the unused words are forgotten at the next key.
pub const WORDS_KEPT_BYTES: usize = 1 << 20;
/// Room for a text before its length is known, in bytes.
pub const TEXT_START: usize = 8192;
/// Most bytes of processes in one interval of a foreign recording; collectl writes about 1.5 kB for each process.
pub const TASKS_BYTES_MAX: usize = 64 << 20;
/// Bytes of words of a kind after which a foreign recording's texts are cut again.
pub const WORDS_PLAYED_BYTES: usize = 16 << 20;
/// Bytes of templates after which their layouts are made again.
pub const LAYOUTS_BYTES: usize = 8 << 20;
/// Most instances (processes, threads, devices) of one kind of source.
pub const INSTANCES_MAX: usize = 1 << 20;
/// Most control groups that are read; those nearest to the root come first.
pub const CGROUPS_MAX: usize = 4096;
/// Most templates remembered for one kind of source.
pub const TEMPLATES_MAX: usize = 256;
/// Slots of a template from which on those that are alike are counted when it is written.
pub const TEMPLATE_RUNS_FROM: usize = 256;
/// Most slots of all templates of a kind that were written so, between two key records: a few bytes may stand for many.
pub const TEMPLATE_RUNS_SLOTS_MAX: usize = 1 << 20;
/// Most zeros of a kind that are counted, not written, between two key records: a few bytes may stand for many.
pub const SPARSE_ZEROS_MAX: usize = 1 << 20;
/// Longest text whose buffer is copied when it has changed; that of a longer one is exchanged.
pub const TEXT_COPIED_MAX: usize = 64 << 10;
/// Bytes of such a text that are read and compared at a time: they stay in the CPU's cache.
pub const PIECE_READ: usize = 128 << 10;
/// Most interned words of one kind between two key records.
pub const WORDS_MAX: usize = 1 << 20;
/// Longest interned word (a command line is cut by the kernel at its own limits).
pub const WORD_BYTES_MAX: usize = 1 << 20;
/// Longest name of an instance, in bytes.
pub const NAME_MAX: usize = 4096;
/// Widest aligned or zero-filled number; wider stays template.
pub const NUMBER_WIDTH_MAX: usize = 64;
/// New templates of one text within [`NOVELTY_SAMPLES`] after which it is kept as bytes.
pub const NOVELTY_MAX: u8 = 3;
/// Samples over which novelty is counted, and for which a text is then kept as bytes.
pub const NOVELTY_SAMPLES: u64 = 60;
/// Samples from one key record to the next.
pub const KEY_SAMPLES: u32 = 60;
/// Files kept open: the hard limit less a reserve, and never more than this.
pub const KEPT_FILES_MAX: u64 = 4096;
/// File descriptors left for everything but kept files.
pub const KEPT_FILES_RESERVE: u64 = 256;
/// First size of the queue between sampler and writer, in bytes; doubles to [`QUEUE_MAX`].
pub const QUEUE_START: usize = 1 << 20;
/// Largest size of the queue between sampler and writer, in bytes.
pub const QUEUE_MAX: usize = 32 << 20;
/// Longest context text of a recording, in bytes.
pub const CONTEXT_MAX: usize = 256 << 10;

/// rrdcached: bytes of a series' state, which updates change in place: its header's live part, and the seasons of
/// Holt-Winters archives. New series that have more are refused. One source has room for the longest season there is.
pub const SERIES_STATE_MAX: u64 = 5 << 18;
/// rrdcached: bytes of an .rrd file before its rows.
pub const RRD_HEADER_MAX: u64 = 4 << 20;
/// rrdcached: cells of files that are in memory as a whole: for TUNE, and for CREATE with sources, all of them and what
/// is made. Others are read and written in pieces.
pub const RRD_CELLS_MAX: u64 = 8 << 20;
/// rrdcached: a file with more cells, or with a header of more bytes, is large, and has threads of its own.
pub const SMALL_CELLS: u64 = 8 << 10;
/// See [`SMALL_CELLS`].
pub const SMALL_HEADER: u64 = 64 << 10;
/// rrdcached: cells of a new file, all unknown, that is not large yet: writing it is all it takes.
pub const SMALL_BLANK_CELLS: u64 = 256 << 10;
/// rrdcached: bytes written to a file, or sent to a client, at a time.
pub const PIECE_BYTES: usize = 256 << 10;
/// rrdcached: connections. Beyond it a client with more than half of them loses some to other clients; without such a
/// client new connections wait.
pub const CONNECTIONS_MAX: usize = 16_384;
/// rrdcached: unserved and unread bytes of all connections. Beyond it the client that holds most loses connections.
pub const HELD_MAX: usize = 96 << 20;
/// rrdcached: bytes of answers made in one turn of the loop, unless one request alone has more.
pub const TURN_ANSWERS_MAX: usize = 16 << 20;
/// rrdcached: seconds for a client to take anything of its answers, and [`TAKEN_AT_LEAST`] of long ones.
pub const STALL_SECONDS: u64 = 60;
/// See [`STALL_SECONDS`].
pub const TAKEN_AT_LEAST: usize = 64 << 10;

/// mrtg.cfg: bytes of a configuration with all included files, and of the configuration that is assembled from them.
pub const MRTG_CFG_BYTES_MAX: usize = 512 << 20;
/// mrtg.cfg: files of a configuration. A file that includes itself ends here.
pub const MRTG_CFG_FILES_MAX: usize = 10_000;
/// mrtg.cfg: bytes of the patterns of an `Include`.
pub const MRTG_PATTERN_BYTES_MAX: usize = 4096;
/// mrtg.cfg: targets.
pub const MRTG_CFG_TARGETS_MAX: usize = 2_000_000;
/// mrtg.cfg: bytes of a `Target[]` without a blank; patterns are looked for in these.
pub const MRTG_TARGET_RUN_MAX: usize = 4096;
/// mrtg.cfg: bytes of a `Target[]`.
pub const MRTG_TARGET_BYTES_MAX: usize = 1 << 20;
/// mrtg.cfg: parentheses within parentheses in an expression.
pub const MRTG_EXPRESSION_DEPTH_MAX: usize = 64;

/// PostgreSQL: bytes of a server's answer; beyond it the connection ends.
pub const PG_ANSWER_BYTES_MAX: u64 = 32 << 20;
/// PostgreSQL: bytes of one message of a server, and of all its settings.
pub const PG_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// PostgreSQL: rows of an answer.
pub const PG_ROWS_MAX: usize = 65_536;

/// Private writable memory of the recorder of kymo serve: RLIMIT_DATA. Each process of kymo serve needs a part of its limit;
/// more is a fault or an attack. The process then ends, and the guardian starts it again.
pub const RECORDER_MEMORY_MAX: u64 = 1 << 30;
/// The keeper's, for up to [`SERIES_MAX`] series.
pub const KEEPER_MEMORY_MAX: u64 = 8 << 30;
/// The hub's.
pub const HUB_MEMORY_MAX: u64 = 2 << 30;
/// A poller's, for up to [`MRTG_CFG_TARGETS_MAX`] targets.
pub const POLLER_MEMORY_MAX: u64 = 8 << 30;
/// All mappings of the process that asks PostgreSQL: RLIMIT_AS.
pub const PG_MEMORY_MAX: u64 = 256 << 20;
/// Further mappings of that process for each server.
pub const PG_SERVER_MEMORY_MAX: u64 = 128 << 20;

/// Programs: bytes of a publisher's file; a longer one is not read.
pub const SHM_FILE_MAX: usize = 256 << 20;
/// Programs: slots of a publisher.
pub const SHM_SLOTS_MAX: usize = 65_536;
/// Programs: cells of a slot.
pub const SHM_CELLS_MAX: usize = 65_536;
/// Programs: bytes of a command's text.
pub const SHM_TEXT_MAX: usize = 65_536;
/// Programs: labels of a slot.
pub const SHM_SLOT_LABELS_MAX: usize = 8;
/// Programs: bytes of a metric's name, unit, help, and of each key and value of its labels.
pub const SHM_METRIC_TEXT_MAX: usize = 1024;
/// Programs: labels of a metric.
pub const SHM_METRIC_LABELS_MAX: usize = 16;
/// Programs: bytes of all descriptions of a publisher's metrics.
pub const SHM_METRICS_MAX: usize = 4 << 20;
/// Programs: files of a user's ended programs that a folder keeps while none collects them.
pub const SHM_ENDED_MAX: usize = 64;
/// Programs: the same with those of the last 30 s, which a collector may not have seen yet.
pub const SHM_ENDED_YOUNG_MAX: usize = 512;
/// Programs: the age of these, in nanoseconds.
pub const SHM_ENDED_YOUNG_NS: u64 = 30_000_000_000;
/// Programs: files that go for each new one, at most: after a burst there are as few as before in a while.
pub const SHM_ENDED_REMOVED: usize = 16;
/// Names of a user in a folder where all users publish.
pub const SHM_USER_NAMES_MAX: usize = 1024;
/// Bytes of a user's files in a folder where all users publish, whose file system has `room` bytes: a thirty-second, but enough for
/// most programs, and not more than two PostgreSQL servers of 5,000 connections take.
pub fn shm_user_bytes(room: u64) -> u64 {
    (room / 32).clamp(32 << 20, 160 << 20)
}
