//! The kernel's clock and the recorder's own process, of which there is no file to read, or only long ones.

use kymo_sys::clock_discipline::{ClockDiscipline, clock_discipline};
use kymo_sys::own_process::{OwnProcess, own_process};

use super::put_line;

/// Lines `NAME NUMBER` of adjtimex. Negative numbers are 64 bits in two's complement, so that a change of sign is a
/// change of value alone.
pub(super) fn clock(out: &mut Vec<u8>) -> Result<(), u16> {
    match clock_discipline() {
        Ok(found) => {
            put_clock(&found, out);
            Ok(())
        }
        Err(error) => Err(error
            .raw_os_error()
            .and_then(|errno| u16::try_from(errno).ok())
            .unwrap_or(0)),
    }
}

fn put_clock(found: &ClockDiscipline, out: &mut Vec<u8>) {
    for (name, number) in [
        ("clock_synchronized", i64::from(found.is_synchronized)),
        ("clock_offset", found.offset_ns),
        ("clock_frequency", found.frequency),
        ("clock_error_max", found.error_max_us),
        ("clock_error", found.error_us),
        ("clock_status", found.status),
        ("clock_constant", found.constant),
        ("clock_tick", found.tick_us),
        ("pps_frequency", found.pps_frequency),
        ("pps_jitter", found.pps_jitter_ns),
        ("pps_shift", found.pps_shift),
        ("pps_stability", found.pps_stability),
        ("pps_jitters", found.pps_jitters),
        ("pps_calibrations", found.pps_calibrations),
        ("pps_errors", found.pps_errors),
        ("pps_unstable", found.pps_unstable),
        ("clock_tai", found.tai_s),
    ] {
        put_line(out, name.as_bytes(), [Some(number.cast_unsigned())]);
    }
}

/// Lines `NAME NUMBER` of the recorder's process.
pub(super) fn recorder(out: &mut Vec<u8>) {
    put_process(&own_process(), out);
}

fn put_process(own: &OwnProcess, out: &mut Vec<u8>) {
    for (name, number) in [
        ("recorder_cpu", Some(own.cpu_us)),
        ("recorder_virtual", own.virtual_pages),
        ("recorder_resident", own.resident_pages),
        ("recorder_virtual_max", Some(own.virtual_bytes_max)),
        ("recorder_files", own.open_files),
        ("recorder_files_max", Some(own.open_files_max)),
        ("recorder_started", own.started_ms),
    ] {
        if number.is_some() {
            put_line(out, name.as_bytes(), [number]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_zero_is_a_value() {
        let mut out = Vec::new();
        let found = ClockDiscipline {
            offset_ns: -1,
            ..ClockDiscipline::default()
        };
        put_clock(&found, &mut out);
        let text = String::from_utf8(out).expect("a text");
        assert!(
            text.contains("clock_offset 18446744073709551615\n"),
            "{text}"
        );
    }
}
