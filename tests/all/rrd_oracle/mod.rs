//! The oracle of round-robin arithmetic: stock rrdtool and kymo do the same updates to copies of one file; then the
//! files are equal byte for byte, and so is every error text and every line of updatev. Needs rrdtool 1.7.2 or later.
//!
//! `SEED` is the first case's seed. A failing case is reduced and printed.

mod case;
mod stock;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use case::{Call, Case, Random, disturb};
use kymo_base::printf::put_exp;
use kymo_rrd::update::{Now, Scratch, Update, Written, check, update, update_all, update_with};
use kymo_rrd::{Header, Rrd};
use kymo_sys::effort::{effort, first_seed};
use stock::{Reply, Stock};

/// Cases whose commands are sent to rrdtool together.
const BATCH: u64 = 200;

#[test]
fn updates_are_rrdtools_to_the_last_bit() {
    let (count, first) = (effort(20_000), first_seed(1));
    let mut oracle = Oracle {
        stock: Stock::start(),
        folder: Folder::new(),
        scratch: Scratch::default(),
    };
    let started = std::time::Instant::now();
    let (mut done, mut updates) = (0, 0);
    while done < count {
        let cases: Vec<Case> = (done..count.min(done + BATCH))
            .map(|i| Case::new((first + i).wrapping_mul(0x2545_f491_4f6c_dd1d)))
            .collect();
        done += cases.len() as u64;
        updates += oracle.compare(cases);
        if done % 100_000 == 0 {
            eprintln!("{done} cases, {updates} updates, {:?}", started.elapsed());
        }
    }
    eprintln!("{done} cases, {updates} updates, {:?}", started.elapsed());
    assert!(updates > 4 * count, "the generator makes few updates");
}

struct Oracle {
    stock: Stock,
    folder: Folder,
    scratch: Scratch,
}

/// The file after a case, and the reply to each call.
#[derive(PartialEq)]
struct Outcome {
    file: Vec<u8>,
    replies: Vec<Reply>,
}

impl Oracle {
    /// Returns the number of compared arguments.
    fn compare(&mut self, cases: Vec<Case>) -> u64 {
        let paths: Vec<String> = (0..cases.len()).map(|i| self.folder.file(i)).collect();
        let mut commands = String::new();
        for (case, path) in cases.iter().zip(&paths) {
            writeln!(commands, "create {path} {}", case.create).expect("a string");
            if let Some(tune) = &case.tune {
                writeln!(commands, "tune {path} {tune}").expect("a string");
            }
        }
        for reply in self.stock.ask(&commands) {
            assert_eq!(reply.error, None, "the generator makes a wrong file");
        }
        let mut made = Vec::new();
        for (case, path) in cases.into_iter().zip(paths) {
            let file = prepared(&read(&path), &case);
            made.push((case, path, file));
        }
        let theirs = self.theirs(&made);
        let mut count = 0;
        for ((case, path, file), theirs) in made.iter().zip(theirs) {
            count += case
                .calls
                .iter()
                .map(|call| call.args.len() as u64)
                .sum::<u64>();
            let ours = self.ours(case, path, file);
            if ours != theirs {
                self.report(case.clone(), path, file);
            }
        }
        count
    }

    fn theirs(&mut self, cases: &[(Case, String, Vec<u8>)]) -> Vec<Outcome> {
        let mut commands = String::new();
        for (case, path, file) in cases {
            std::fs::write(path, file).expect("a scratch file");
            for call in &case.calls {
                put_command(&mut commands, call, path);
            }
        }
        let mut replies = self.stock.ask(&commands).into_iter();
        let outcome = |(case, path, _): &(Case, String, Vec<u8>)| Outcome {
            replies: replies.by_ref().take(case.calls.len()).collect(),
            file: read(path),
        };
        cases.iter().map(outcome).collect()
    }

    fn ours(&mut self, case: &Case, path: &str, file: &[u8]) -> Outcome {
        let mut rrd = Rrd::parse(file).expect("stock's own file");
        let mut replies = Vec::new();
        for call in &case.calls {
            passes_over_what_is_refused(&rrd, call, path);
            replies.push(run(&mut self.scratch, &mut rrd, call, path));
        }
        let file = rrd.to_bytes();
        Outcome { file, replies }
    }

    /// Removes calls and arguments as long as the difference stays, and fails.
    fn report(&mut self, mut case: Case, path: &str, file: &[u8]) {
        let seed = case.seed;
        while let Some(smaller) = smaller(&case)
            .into_iter()
            .find(|smaller| self.differs(smaller, path, file))
        {
            case = smaller;
        }
        let theirs = self.theirs(&[(case.clone(), path.to_owned(), file.to_vec())]);
        let ours = self.ours(&case, path, file);
        let calls: Vec<String> = case.calls.iter().map(|call| format!("{call:?}")).collect();
        panic!(
            "seed {seed}, create {}, tune {:?}, version {:?}, disturb {:?}\n{}\n{}",
            case.create,
            case.tune,
            case.version,
            case.disturb,
            calls.join("\n"),
            difference(&theirs[0], &ours),
        );
    }

    fn differs(&mut self, case: &Case, path: &str, file: &[u8]) -> bool {
        let theirs = self.theirs(&[(case.clone(), path.to_owned(), file.to_vec())]);
        self.ours(case, path, file) != theirs[0]
    }
}

/// Copies of the case, each without one call or argument.
fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for i in (0..case.calls.len()).rev() {
        let mut fewer = case.clone();
        fewer.calls.remove(i);
        all.push(fewer);
        for j in (0..case.calls[i].args.len()).rev() {
            let mut fewer = case.clone();
            fewer.calls[i].args.remove(j);
            all.push(fewer);
        }
    }
    all.retain(|case| case.calls.iter().all(|call| !call.args.is_empty()));
    all
}

fn put_command(commands: &mut String, call: &Call, path: &str) {
    *commands += if call.tells { "updatev" } else { "update" };
    write!(commands, " {path}").expect("a string");
    if call.skip_past {
        *commands += " --skip-past-updates";
    }
    if let Some(template) = &call.template {
        write!(commands, " --template \"{template}\"").expect("a string");
    }
    for arg in &call.args {
        write!(commands, " \"{arg}\"").expect("a string");
    }
    commands.push('\n');
}

fn how<'a>(call: &'a Call, path: &'a str) -> Update<'a> {
    Update {
        file_name: path.as_bytes(),
        template: call.template.as_deref().map(str::as_bytes),
        skip_past: call.skip_past,
        now: Now { sec: 0, usec: 0 },
        at_time: &|text| {
            Ok(std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok()))
        },
    }
}

fn run(scratch: &mut Scratch, rrd: &mut Rrd, call: &Call, path: &str) -> Reply {
    let how = how(call, path);
    let args: Vec<&[u8]> = call.args.iter().map(String::as_bytes).collect();
    let mut seen = Vec::new();
    let tells = call.tells.then_some(&mut seen);
    let done = update_with(scratch, &mut rrd.header, &mut rrd.cells, &how, &args, tells);
    let mut lines = Vec::new();
    if call.tells {
        lines.push(format!(
            "return_value = {}",
            if done.is_ok() { 0 } else { -1 }
        ));
        lines.extend(seen.iter().map(|written| line(&rrd.header, written)));
    }
    Reply {
        lines,
        error: done.err().map(|error| error.text),
    }
}

/// Checks that `update_all` equals a call of `update` for each argument that `check` accepts, and reports the others.
fn passes_over_what_is_refused(before: &Rrd, call: &Call, path: &str) {
    let how = how(call, path);
    let args: Vec<&[u8]> = call.args.iter().map(String::as_bytes).collect();
    let (mut all, mut refused) = (before.clone(), Vec::new());
    let scratch = &mut Scratch::default();
    let done = update_all(
        scratch,
        &mut all.header,
        &mut all.cells,
        &how,
        &args,
        &mut refused,
    );
    if done.is_err() {
        return;
    }
    let (mut each, mut errors) = (before.clone(), Vec::new());
    for (i, arg) in args.into_iter().enumerate() {
        match check(&each.header, &how, arg) {
            Err(error) => errors.push((i, error)),
            Ok(stamp) => {
                update(&mut each.header, &mut each.cells, &how, &[arg], None).expect("checked");
                assert_eq!(
                    (each.header.last_up, each.header.last_up_usec),
                    (stamp.sec, stamp.usec)
                );
            }
        }
    }
    assert_eq!(refused, errors, "{call:?}");
    assert!(all.to_bytes() == each.to_bytes(), "{call:?}");
}

fn line(header: &Header, written: &Written) -> String {
    let (rra, ds) = (&header.rra[written.archive], &header.ds[written.source]);
    let mut value = Vec::new();
    put_exp(&mut value, written.value, 10);
    if written.value.is_nan() {
        value = b"NaN".to_vec();
    }
    format!(
        "[{}]RRA[{}][{}]DS[{}] = {}",
        written.time,
        String::from_utf8_lossy(rra.cf()),
        rra.pdp_cnt,
        String::from_utf8_lossy(ds.name()),
        String::from_utf8_lossy(&value)
    )
}

/// The file converted to an older version, without microseconds, or with its state disturbed.
fn prepared(file: &[u8], case: &Case) -> Vec<u8> {
    let mut rrd = Rrd::parse(file).expect("stock's own file");
    if let (Some(version), 3) = (case.version, rrd.header.version) {
        rrd.header.version = version;
    }
    if let Some(seed) = case.disturb {
        disturb(&mut rrd.header, &mut Random(seed));
    }
    rrd.to_bytes()
}

fn difference(theirs: &Outcome, ours: &Outcome) -> String {
    let mut text = String::new();
    for (theirs, ours) in theirs.replies.iter().zip(&ours.replies) {
        if theirs != ours {
            writeln!(text, "stock says {theirs:?}\nours  says {ours:?}").expect("a string");
        }
    }
    let [theirs, ours] = [theirs, ours].map(|outcome| Rrd::parse(&outcome.file).expect("a file"));
    let (a, b) = (&theirs.header, &ours.header);
    let mut say = |what: &str, theirs: String, ours: String| {
        if theirs != ours {
            writeln!(text, "{what}: stock {theirs}\n{what}: ours  {ours}").expect("a string");
        }
    };
    let stamp = |header: &Header| format!("{}.{}", header.last_up, header.last_up_usec);
    say("stamp", stamp(a), stamp(b));
    say(
        "current rows",
        format!("{:?}", a.cur_row),
        format!("{:?}", b.cur_row),
    );
    for (i, (a, b)) in a.pdp_prep.iter().zip(&b.pdp_prep).enumerate() {
        say(&format!("source {i}"), format!("{a:x?}"), format!("{b:x?}"));
    }
    for (i, (a, b)) in a.cdp_prep.iter().zip(&b.cdp_prep).enumerate() {
        say(
            &format!("row in the making {i}"),
            format!("{a:x?}"),
            format!("{b:x?}"),
        );
    }
    for (i, (a, b)) in theirs.cells.iter().zip(&ours.cells).enumerate() {
        let [a, b] = [a, b].map(|cell| format!("{:x} {cell:e}", cell.to_bits()));
        say(&format!("cell {i}"), a, b);
    }
    text
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).expect("a scratch file")
}

/// A folder in memory if possible; removed at drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let memory = Path::new("/dev/shm");
        let within = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let path = within.join(format!("kymo-test-{}-rrd-oracle", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch folder");
        Folder(path)
    }

    fn file(&self, i: usize) -> String {
        self.0
            .join(format!("{i}.rrd"))
            .to_string_lossy()
            .into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover is in memory or in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
