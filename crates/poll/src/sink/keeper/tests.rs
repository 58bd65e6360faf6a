use super::*;

/// An answer that refused one value several times made a counter negative, which ended the poller.
#[test]
fn a_value_is_refused_once() {
    let taken = |refused: u32| {
        let mut body = vec![0x86];
        body.extend([0; 8]);
        body.extend(refused.to_le_bytes());
        for _ in 0..refused {
            // Place of the value, kind of error, text.
            body.extend([0, 0, 0, 0, 0, 2, 0, b'n', b'o']);
        }
        let length = body.len() as u16;
        [length.to_le_bytes().to_vec(), body].concat()
    };
    // Definitions of series are answered first, then three values.
    fuzz_keeper(&[vec![3], taken(0), taken(5)].concat());
}
