//! `kymo rrd` beside stock `rrdtool`: the same command lines in two folders with the same files; what is printed, the
//! exit code and the files afterwards are equal. Files that either made begin their rows anywhere: they are turned to
//! begin alike, then both folders get the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use kymo_rrd::Rrd;
use kymo_tests::{Scratch, kymo};

/// Zone of the tests: with summer time.
const ZONE: &str = "Europe/Zurich";

/// The two programs, each in a folder of its own.
struct Pair {
    scratch: Scratch,
    /// Environment of both.
    variables: Vec<(&'static str, String)>,
}

impl Pair {
    fn new(name: &str) -> Pair {
        let scratch = Scratch::new(name);
        for folder in ["stock", "kymo"] {
            fs::create_dir(scratch.path(folder)).expect("a folder");
        }
        Pair {
            scratch,
            variables: vec![("TZ", ZONE.into())],
        }
    }

    fn folders(&self) -> [PathBuf; 2] {
        ["stock", "kymo"].map(|name| self.scratch.path(name))
    }

    /// Runs both, ready to be fed.
    fn commands(&self, words: &[String]) -> [Command; 2] {
        let [stock, ours] = self.folders();
        let (mut rrdtool, mut kymo) = (Command::new("rrdtool"), Command::new(kymo()));
        rrdtool.current_dir(stock);
        kymo.current_dir(ours).arg("rrd");
        [rrdtool, kymo].map(|mut command| {
            command.args(words).stdin(Stdio::null());
            command.env_remove("RRDCACHED_ADDRESS").env_remove("PWD");
            for (name, value) in &self.variables {
                command.env(name, value);
            }
            command
        })
    }

    /// Runs a command line in both folders and says what differs. Afterwards both hold stock's files.
    fn difference(&self, line: &str) -> Option<String> {
        let outputs = self.commands(&words(line));
        let [stock, ours] = outputs.map(|mut command| shown(&command.output().expect("it runs")));
        let said = (stock != ours).then(|| format!("{ours}=== not as stock:\n{stock}"));
        said.or(self.files_differ())
    }

    /// The folders hold the same. Files made alike become the same.
    fn files_differ(&self) -> Option<String> {
        let [stock, ours] = self.folders();
        let (theirs, mine) = (files(&stock), files(&ours));
        let mut difference = None;
        for name in theirs.keys().chain(mine.keys()) {
            let difference_here = match (theirs.get(name), mine.get(name)) {
                (Some(theirs), Some(mine)) if theirs == mine => continue,
                (Some(theirs), Some(mine)) => compare(theirs, mine),
                (there, _) => Some(format!("only stock has it: {}", there.is_some())),
            };
            difference = difference.or(difference_here.map(|text| format!("{name}: {text}")));
            let _ = match theirs.get(name) {
                Some(bytes) => fs::write(ours.join(name), bytes),
                None => fs::remove_file(ours.join(name)),
            };
        }
        difference
    }

    /// A file in both folders.
    fn put(&self, name: &str, bytes: &[u8]) {
        for folder in self.folders() {
            fs::write(folder.join(name), bytes).expect("write");
        }
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.scratch.path("stock").join(name)).expect("read")
    }
}

/// Words between blanks; within quotes blanks stay.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    let mut word: Option<String> = None;
    for letter in line.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{:?}\n{}--- stderr\n{}",
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

fn files(folder: &PathBuf) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("list").flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect()
}

/// What differs between files that may begin their rows at different places.
fn compare(theirs: &[u8], mine: &[u8]) -> Option<String> {
    let (Some(theirs), Some(mine)) = (turned(theirs), turned(mine)) else {
        return Some("other bytes".into());
    };
    if mine.header != theirs.header {
        return Some(format!(
            "{:#?}\n=== not as stock:\n{:#?}",
            mine.header, theirs.header
        ));
    }
    let differ = mine.to_bytes() != theirs.to_bytes();
    differ.then(|| format!("{:?}\n=== not as stock:\n{:?}", mine.cells, theirs.cells))
}

/// A file with each archive's newest row last.
fn turned(bytes: &[u8]) -> Option<Rrd> {
    let mut rrd = Rrd::parse(bytes).ok()?;
    let columns = rrd.header.ds.len();
    let mut rest = rrd.cells.as_mut_slice();
    for (rra, cur_row) in rrd.header.rra.iter().zip(&mut rrd.header.cur_row) {
        let (rows, behind) = rest.split_at_mut(rra.row_cnt as usize * columns);
        rows.rotate_left((*cur_row as usize + 1) * columns % rows.len());
        *cur_row = rra.row_cnt - 1;
        rest = behind;
    }
    Some(rrd)
}

#[test]
fn command_lines() {
    let pair = Pair::new("lines");
    let lines = LINES.lines().filter(|line| !line.is_empty());
    let wrong: Vec<String> = lines
        .filter_map(|line| Some(format!("{line}\n{}\n", pair.difference(line)?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

const LINES: &str = "
create a.rrd -b 1000000000 -s 10 DS:x:GAUGE:60:U:U DS:y:COUNTER:60:0:U RRA:AVERAGE:0.5:1:20 RRA:MAX:0.5:3:10
create --start=1000000000 --step 10 -O DS:x:GAUGE:60:U:U b.rrd RRA:LAST:0:1:10
create b.rrd -O -b 1000000000 DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create a.rrd
create -b 1000000000
create -b 5 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b start+5 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b gibberish c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -s 0 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -s 10x c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U
create -b 1000000000 c.rrd RRA:LAST:0:1:10
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 nonsense
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 --nonsense
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 -q
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 -t
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 --template
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10 --no-overwrite=1
create -b 1000000000 c.rrd DS:x:GAUGE:60:U:U DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 nodir/c.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd -r nosource.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd -r . DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
create -b 1000000000 c.rrd -t nosource.rrd
create -b 1000000000 c.rrd -t a.rrd -t a.rrd
create -b 1000000000 c.rrd -- DS:x:GAUGE:60:U:U -RRA:LAST:0:1:10
create '-b20010909 03:46' d.rrd DS:x:GAUGE:60:U:U RRA:LAST:0:1:10
update a.rrd 1000000010:1:2
update a.rrd 1000000020:1:2 1000000025.5:3:4 1000000030:U:5
update a.rrd 1000000020:1:2
update a.rrd 1000000040:1
update a.rrd 1000000040:1:2:3
update a.rrd 1000000040:1:x
update a.rrd 1000000050:7:8 1000000045:1:2 1000000060:9:9
update -s a.rrd 1000000050:7:8 1000000045:1:2 1000000060:9:9
update --skip-past-updates a.rrd 1000000050:7:8
update -t y a.rrd 1000000070:20
update --template y:x a.rrd 1000000080:21:3
update --template=y:z a.rrd 1000000090:21:3
update -t y:x a.rrd 1000000090:21
update a.rrd
update -t x
update --skip a.rrd 1000000090:1:1
update nofile.rrd 1000000090:1:1
update . 1000000090:1:1
update a.rrd '20010909 03:48:20@1:2'
update a.rrd '20010909 03:48@1:2'
update a.rrd gibberish@1:2
update a.rrd start+5@1:2
update a.rrd 1000000100:
update a.rrd :1:2
update a.rrd 1e9:1:2
updatev a.rrd 1000000110:1:50
updatev a.rrd 1000000200:1:60 1000000190:5:5
updatev -s a.rrd 1000000200:1:60 1000000230:5:5
updatev -t x a.rrd 1000000240:5
updatev -d unix:/nowhere a.rrd 1000000240:5
updatev a.rrd
updatev nofile.rrd 1:1
info a.rrd
info -F a.rrd
info a.rrd b.rrd
info -q a.rrd
info nofile.rrd
info .
fetch a.rrd AVERAGE -s 1000000000 -e 1000000250
fetch a.rrd AVERAGE --start 1000000000 --end start+100
fetch a.rrd MAX -s 1000000000 -e 1000000250
fetch a.rrd MAX -s 1000000000 -e 1000000250 -r 30
fetch a.rrd MAX -s 1000000005 -e 1000000253 -a -r 30
fetch a.rrd MIN -s 1000000000 -e 1000000250
fetch a.rrd HWPREDICT -s 1000000000 -e 1000000250
fetch a.rrd NONE -s 1000000000 -e 1000000250
fetch nofile.rrd NONE -s 1000000000 -e 1000000250
fetch nofile.rrd MAX -s 1000000000 -e 1000000250
fetch a.rrd
fetch a.rrd MAX -s 1000000000 -e 999999999
fetch a.rrd MAX -s 5 -e 10
fetch a.rrd MAX -s start+5
fetch a.rrd MAX -s end-5 -e start+5
fetch a.rrd MAX -e end-5
fetch a.rrd MAX -s now-x
fetch a.rrd MAX -s now+
fetch a.rrd MAX -e gibber^ish
fetch a.rrd MAX -r 0 -s 1000000000 -e 1000000250
fetch a.rrd MAX -r 5x -s 1000000000 -e 1000000250
fetch a.rrd MAX -r 1m -s 1000000000 -e 1000000250
fetch a.rrd MAX more words -s 1000000000 -e 1000000250
fetch -s1000000000 -e1000000250 -- a.rrd AVERAGE
first a.rrd
first a.rrd --rraindex 1
first a.rrd --rraindex=0x1
first a.rrd --rraindex 2
first a.rrd --rraindex -1
first a.rrd --rraindex
first nofile.rrd
first --daemon
last a.rrd
last a.rrd b.rrd
last nofile.rrd
last -x a.rrd
lastupdate a.rrd
lastupdate b.rrd
lastupdate nofile.rrd
lastupdate a.rrd b.rrd
dump a.rrd
dump -n a.rrd
dump -h xsd a.rrd
dump --header none a.rrd
dump --header strange a.rrd
dump a.rrd a.xml
dump -h xsd b.rrd b.xml
dump -q a.rrd
dump a.rrd b c
dump nofile.rrd
dump nofile.rrd nofile.xml
restore a.xml e.rrd
restore a.xml e.rrd
restore -f a.xml e.rrd
restore -r b.xml f.rrd
restore --force-overwrite --range-check b.xml f.rrd
restore nofile.xml g.rrd
restore a.xml
restore -q a.xml g.rrd
restore a.xml nodir/g.rrd
tune b.rrd -h x:120
tune b.rrd --minimum x:0 --maximum x:5e3
tune b.rrd -a x:U -i x:-1
tune b.rrd -a y:U
tune b.rrd -a x
tune b.rrd -a x:word
tune b.rrd -d x:DERIVE
tune b.rrd -d x:DERIVATIVE
tune b.rrd -d x:COMPUTE
tune b.rrd -r x:z
tune b.rrd -r x:y
tune b.rrd -h z:1 -q
tune b.rrd -h z:7 --minimum
tune b.rrd --gamma 0.5
tune b.rrd --alpha 2
tune b.rrd
tune nofile.rrd -h x:1
tune --heartbeat x:1
tune b.rrd DS:w:GAUGE:60:U:U
tune b.rrd RRA:MIN:0.5:2:10
tune b.rrd 'RRA#0:+5'
tune b.rrd 'RRA#1:=3'
tune b.rrd DELRRA:1
tune b.rrd DEL:w
tune b.rrd nonsense
tune b.rrd 'RRA#0'
resize a.rrd 0 GROW 5
resize a.rrd 1 SHRINK 3
resize a.rrd 7 GROW 5
resize a.rrd 0 SHRINK 500
resize a.rrd 0 GROW 0
resize a.rrd 0 MOVE 5
resize a.rrd 0 GROW
resize resize.rrd 0 GROW 5
resize nofile.rrd 0 GROW 5
flushcached a.rrd
flushcached -d
flushcached -d unix:/nowhere a.rrd
list .
list -r .
list a.rrd
list ./a.rrd
list './*.rrd'
list './?.rrd'
list '*.nothing'
list -r './*.rrd'
list ..
list nodir
list a.xml
list . .
list -x .
nonsense a

";
