//! Remote read: any bytes as a request, as frames and as a chunk; requests and samples that are read come back.

use crate::remote_read::{
    ReadRequest, SeriesChunks, put_frames, put_labels, put_request, read_chunk, take_frame,
};

/// Any bytes as what a client sends, and as what a server answers.
pub fn fuzz_remote_read(input: &[u8]) {
    if let Ok(request) = ReadRequest::of(input) {
        let mut message = Vec::new();
        put_request(&mut message, &request.queries, &[request.form]);
        assert_eq!(ReadRequest::of(&message), Ok(request), "a request changed");
    }
    let mut answer = input;
    while take_frame(&mut answer).is_ok() {
        assert!(answer.len() < input.len(), "a frame of no bytes");
    }
    let mut samples = Vec::new();
    let is_whole = read_chunk(input, &mut samples).is_ok();
    assert!(samples.len() <= usize::from(u16::MAX), "too many samples");
    if is_whole {
        come_back(&samples);
    }
    let cells = input.chunks_exact(16);
    come_back(&cells.filter_map(sample_of).collect::<Vec<_>>());
}

fn sample_of(cell: &[u8]) -> Option<(i64, f64)> {
    let (t_ms, rest) = cell.split_first_chunk::<8>()?;
    let (v, _) = rest.split_first_chunk::<8>()?;
    Some((i64::from_le_bytes(*t_ms), f64::from_le_bytes(*v)))
}

fn come_back(samples: &[(i64, f64)]) {
    let (mut chunks, mut labels, mut answer) = (SeriesChunks::default(), Vec::new(), Vec::new());
    for &(t_ms, v) in samples {
        chunks.push(t_ms, v);
    }
    chunks.finish();
    put_labels(&mut labels, [("__name__", "up")]);
    put_frames(&mut answer, 0, &labels, &chunks);
    let (mut rest, mut again) = (answer.as_slice(), Vec::new());
    while !rest.is_empty() {
        let series = take_frame(&mut rest).unwrap_or_else(|bad| unreachable!("BUG: {bad:?}"));
        for chunk in series.chunks {
            assert_eq!(read_chunk(chunk, &mut again), Ok(()), "a chunk");
        }
    }
    let bits = |of: &[(i64, f64)]| -> Vec<(i64, u64)> {
        of.iter().map(|(t_ms, v)| (*t_ms, v.to_bits())).collect()
    };
    assert_eq!(bits(&again), bits(samples), "samples changed");
}
