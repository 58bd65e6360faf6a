//! An entry point for fuzzing: any bytes as the parameters of a question.

use axum::http::Uri;
use kymo_query::series::Grid;

use super::{Params, prometheus, series};
use crate::access::Scopes;
use crate::boards::fuzz_board;

/// Reads bytes as a query, and line by line as values of known parameters. Values that are accepted must be
/// sound.
pub fn fuzz_parameters(input: &[u8]) {
    let mut known = Vec::new();
    let names = ["fields=cpu.", "&from=", "&thru=", "&points="];
    for (name, value) in names.iter().zip(input.split(|&byte| byte == b'\n')) {
        known.extend_from_slice(name.as_bytes());
        known.extend_from_slice(value);
    }
    prometheus::fuzz_form(input);
    fuzz_board(input);
    for query in [input, &known] {
        if let Ok(uri) = Uri::try_from([b"/?", query].concat()) {
            check_parameters(&uri);
        }
    }
}

fn check_parameters(uri: &Uri) {
    let params = Params::of(uri);
    let picks = series::picks(&params.fields(), Scopes::ALL);
    let count = picks.map_or(0, |picks| picks.len());
    assert!(count <= params.fields().len(), "fields from nowhere");
    let points = params.count("points", 600, 11_000).unwrap_or(600);
    assert!((1..=11_000).contains(&points), "a count out of its bounds");
    if let Ok((from_ns, thru_ns)) = params.range() {
        let grid = Grid::new(from_ns, thru_ns, points, 1_000_000_000);
        assert!(
            from_ns >= 0 && grid.count <= points && grid.thru_ns() >= thru_ns,
            "a range that is not covered"
        );
    }
}
