//! How a store is divided: numbers that its formats and memory have in common.

/// Series of a chunk, and those whose frames are one.
pub(crate) const CHUNK: usize = 256;
pub(crate) const STRIPE: usize = 16;
/// The stripe of a slot, and its member there.
pub(crate) fn place_of(slot: u8) -> (u8, u8) {
    const MEMBERS: u8 = 16;
    const _: () = assert!(STRIPE == 16, "stripes have as many members");
    (slot / MEMBERS, slot % MEMBERS)
}

/// Numbers of chunks are below this: whatever a file says, a list of them is no larger than 128 MiB.
pub(crate) const CHUNKS_MAX: u32 = 1 << 24;
/// Longest frame of states, unpacked.
pub(crate) const STATE_MAX: usize = 256 << 20;
/// Raw points are kept so long where a schema says nothing else.
pub(crate) const POINTS_KEPT_S: u64 = 48 * 3600;
