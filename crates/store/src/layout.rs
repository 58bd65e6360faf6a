//! Sizes of a store's parts, common to its formats and to memory.

/// Number of series in a chunk, and of those that share a frame.
pub(crate) const CHUNK: usize = 256;
pub(crate) const STRIPE: usize = 16;
/// The stripe of a slot, and the member in it.
pub(crate) fn place_of(slot: u8) -> (u8, u8) {
    const MEMBERS: u8 = 16;
    const _: () = assert!(STRIPE == 16, "stripes have as many members");
    (slot / MEMBERS, slot % MEMBERS)
}

/// Limit of the numbers of chunks, so that a list of
/// them needs at most 128 MiB, whatever a file contains.
pub(crate) const CHUNKS_MAX: u32 = 1 << 24;
/// Longest frame of states, decompressed.
pub(crate) const STATE_MAX: usize = 256 << 20;
/// Retention of points if a schema has none, in seconds.
pub(crate) const POINTS_KEPT_S: u64 = 48 * 3600;
