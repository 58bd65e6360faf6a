use super::connection::parts;
use super::*;

#[test]
fn addresses_have_a_host_and_a_port() {
    for (address, host, port) in [
        ("rrd.example:1234", "rrd.example", "1234"),
        ("rrd.example", "rrd.example", "42217"),
        ("[::1]:7", "::1", "7"),
        ("[::1]", "::1", "42217"),
        ("fe80::1", "fe80::1", "42217"),
    ] {
        assert_eq!(parts(address), (host, port), "{address}");
    }
}

#[test]
fn words_of_a_line_are_escaped() {
    let mut out = Vec::new();
    put_escaped(&mut out, b"/a b\\c");
    assert_eq!(out, b"/a\\ b\\\\c");
}
