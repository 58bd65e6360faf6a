//! How the kernel disciplines its clock: what adjtimex(2) answers to a caller that changes nothing.
//!
//! The call has no right of its own: with `modes` 0 it fills the struct and changes nothing, and with other modes the
//! kernel wants CAP_SYS_TIME. It is made by its number: glibc's function makes clock_adjtime, which filters of
//! containers refuse.

use std::io;
use std::mem::MaybeUninit;

/// State of the kernel's clock, in the kernel's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockDiscipline {
    /// False: no program keeps the clock with a reference (TIME_ERROR).
    pub is_synchronized: bool,
    /// Distance from the reference, nanoseconds.
    pub offset_ns: i64,
    /// Correction of the frequency, in 2^-16 parts a million.
    pub frequency: i64,
    /// Largest possible error, microseconds.
    pub error_max_us: i64,
    /// Estimated error, microseconds.
    pub error_us: i64,
    /// Bits of the status.
    pub status: i64,
    /// Time constant of the loop that follows the reference.
    pub constant: i64,
    /// Microseconds between two ticks.
    pub tick_us: i64,
    /// Frequency of the pulse per second, in 2^-16 parts a million.
    pub pps_frequency: i64,
    /// Jitter of the pulse, nanoseconds.
    pub pps_jitter_ns: i64,
    /// Binary logarithm of the interval over which the pulse is averaged, in seconds.
    pub pps_shift: i64,
    /// Stability of the pulse, in 2^-16 parts a million.
    pub pps_stability: i64,
    /// Pulses with too much jitter.
    pub pps_jitters: i64,
    /// Calibrations by the pulse.
    pub pps_calibrations: i64,
    /// Calibrations that failed.
    pub pps_errors: i64,
    /// Pulses with too little stability.
    pub pps_unstable: i64,
    /// Seconds from UTC to TAI.
    pub tai_s: i64,
}

/// Asks the kernel.
#[allow(unsafe_code)]
pub fn clock_discipline() -> io::Result<ClockDiscipline> {
    let mut raw = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: adjtimex fills the struct it is given, which is valid when all zeros too; with modes 0 it changes
    // nothing.
    let (state, raw) = unsafe {
        let state = libc::syscall(libc::SYS_adjtimex, raw.as_mut_ptr());
        (state, raw.assume_init())
    };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(of(state, &raw))
}

fn of(state: libc::c_long, raw: &libc::timex) -> ClockDiscipline {
    // Without this bit offset and jitter are microseconds.
    let ns = match raw.status & libc::STA_NANO {
        0 => 1000,
        _ => 1,
    };
    ClockDiscipline {
        is_synchronized: state != libc::c_long::from(libc::TIME_ERROR),
        offset_ns: raw.offset.saturating_mul(ns),
        frequency: raw.freq,
        error_max_us: raw.maxerror,
        error_us: raw.esterror,
        status: raw.status.into(),
        constant: raw.constant,
        tick_us: raw.tick,
        pps_frequency: raw.ppsfreq,
        pps_jitter_ns: raw.jitter.saturating_mul(ns),
        pps_shift: raw.shift.into(),
        pps_stability: raw.stabil,
        pps_jitters: raw.jitcnt,
        pps_calibrations: raw.calcnt,
        pps_errors: raw.errcnt,
        pps_unstable: raw.stbcnt,
        tai_s: raw.tai.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn microseconds_are_nanoseconds_too() {
        // SAFETY: all zeros are valid.
        let mut raw = unsafe { MaybeUninit::<libc::timex>::zeroed().assume_init() };
        (raw.offset, raw.jitter, raw.freq, raw.tai) = (-7, 3, -65_536, 37);
        let coarse = of(libc::TIME_ERROR.into(), &raw);
        assert_eq!((coarse.offset_ns, coarse.pps_jitter_ns), (-7000, 3000));
        assert_eq!((coarse.frequency, coarse.tai_s), (-65_536, 37));
        assert!(!coarse.is_synchronized);
        raw.status = libc::STA_NANO;
        let fine = of(libc::TIME_OK.into(), &raw);
        assert_eq!((fine.offset_ns, fine.pps_jitter_ns), (-7, 3));
        assert!(fine.is_synchronized);
    }

    #[test]
    fn the_kernel_answers_without_a_right() {
        let found = clock_discipline().expect("an answer");
        // A tick lasts ten milliseconds, and may be set to 10 % more or less.
        assert!((9000..=11_000).contains(&found.tick_us), "{found:?}");
    }
}
