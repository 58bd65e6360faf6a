#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| kymo_fuzz::run("feed", input));
