//! Brings data near that will be needed soon: a walk over many small things in memory spends
//! most of its time waiting for them.

/// Bytes that the processor fetches at once.
const LINE: usize = 64;

/// Has the lines of a value fetched, without waiting for them.
pub fn prefetch<T: ?Sized>(value: &T) {
    let from = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of_val(value).max(1)).step_by(LINE) {
        line(from.wrapping_add(offset));
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program would see, and faults for no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

/// Elsewhere it does without.
#[cfg(not(target_arch = "x86_64"))]
fn line(_at: *const u8) {}
