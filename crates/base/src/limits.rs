//! Every limit of kymo, in one place. Hitting one is counted, never silent.

/// Longest text read from one kernel file, in bytes.
pub const TEXT_MAX: usize = 16 << 20;
/// Longest text recorded; a longer one is a failed read (EFBIG). Its template, at worst, is less
/// than [`TEXT_MAX`].
pub const TEXT_RECORDED_MAX: usize = 4 << 20;
/// Longest command line, cgroup path or program name kept of a process.
pub const IDENTITY_MAX: usize = 64 << 10;
/// Bytes of words after which those nobody uses are forgotten at the next key.
pub const WORDS_KEPT_BYTES: usize = 1 << 20;
/// Room for a text before its length is known, in bytes.
pub const TEXT_START: usize = 8192;
/// Most instances (processes, threads, devices) of one kind of source.
pub const INSTANCES_MAX: usize = 1 << 20;
/// Most templates remembered for one kind of source.
pub const TEMPLATES_MAX: usize = 256;
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
