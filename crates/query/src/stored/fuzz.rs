//! Any bytes as what a keeper answers, through all that a client does with them: the hub asks with the same code as the command
//! line, and a keeper that was taken over must not take them with it.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use kymo_wire::fuzz::keeper_frames;
use kymo_wire::keeper::{Range, ServerActivity};

use super::*;

/// The first byte selects the request, and whether the rest is frames or their contents.
pub fn fuzz_answers(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else {
        return;
    };
    let sent = if first & 0x80 == 0 {
        keeper_frames(rest)
    } else {
        rest.to_vec()
    };
    let Ok((asks, mut answers)) = UnixStream::pair() else {
        unreachable!("BUG: no sockets");
    };
    std::thread::scope(|scope| {
        let hears = answers.try_clone();
        scope.spawn(move || {
            let _reset = hears.map(|mut hears| hears.read_to_end(&mut Vec::new()));
        });
        scope.spawn(move || {
            let _heard = answers.write_all(&sent);
            let _gone = answers.shutdown(Shutdown::Write);
        });
        match first % 11 {
            10 => kymo_keeper_client::fuzz_over(asks),
            what => ask(what, &Keeper::over(asks, "/nowhere".into())),
        }
    });
}

fn ask(what: u8, keeper: &Keeper) {
    let names = vec![b"a.rrd".to_vec(), b"b.rrd".to_vec()];
    let count = names.len();
    match what {
        0 => {
            let _series = keeper.select(&[]);
        }
        1 => {
            let range = Range {
                from: 0,
                thru: 1000,
                rows_max: 100,
                names,
            };
            if let Ok(rows) = keeper.range(&range) {
                assert_eq!(rows.len(), count);
                rows.iter().flatten().for_each(shown);
            }
        }
        2 => {
            let _accounts = keeper.accounts();
        }
        3 => {
            let _programs = keeper.programs(true);
        }
        4 => {
            let _marks = marks(keeper, (0, 1000), Vec::new());
        }
        5 => {
            let done = keeper.remove(&names);
            assert!(done.is_err() || done.is_ok_and(|done| done.len() == count));
        }
        6 => {
            let _done = keeper.define(Vec::new());
        }
        7 => {
            let _watched = keeper.activity(ServerActivity::default());
        }
        8 => {
            let _tails = keeper.tails();
        }
        _ => {
            let _marks = device_marks(keeper, "router", (0, 1000));
        }
    }
}

/// Rows over grids as the page has them.
fn shown(rows: &Rows) {
    for step_ns in [SECOND_NS, 60 * SECOND_NS] {
        let grid = Grid {
            from_ns: 0,
            step_ns,
            count: 50,
        };
        for column in 0..rows.columns.len().min(4) {
            let points = points(rows, column, &grid);
            assert_eq!(points.len(), grid.count);
        }
    }
}
