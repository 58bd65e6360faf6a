//! Boards: graphs and expressions that people put together under a name. Each is a JSON file `NAME.json` in one folder
//! (docs/formats/boards.md). A board from outside is checked before it is written, and again when it is read.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kymo_sys::disk::{Disk, NameKind, OpenMode, RealDisk};
use kymo_sys::kept_file::{Sync, replace};
use serde::{Deserialize, Serialize};

/// Most boards.
const BOARDS_MAX: usize = 200;
/// Most bytes of a board.
pub(crate) const BOARD_MAX: usize = 256 << 10;
/// Most charts of a board.
const CHARTS_MAX: usize = 200;
/// Most expressions, and most fields, of a chart.
const LINES_MAX: usize = 64;
/// Most characters of a title, a legend or a unit, and bytes of an expression or an id.
const TITLE_MAX: usize = 300;
const EXPR_MAX: usize = 16 << 10;
/// Most characters of a name.
const NAME_MAX: usize = 64;
/// The version of the format.
const VERSION: u32 = 1;
const SUFFIX: &str = ".json";

/// A board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Board {
    version: u32,
    pub(crate) title: String,
    charts: Vec<BoardChart>,
}

/// A chart: expressions, or fields, or a chart of the page by its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardChart {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    queries: Vec<BoardQuery>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    panel: String,
    #[serde(default)]
    form: ChartForm,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    step: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(default)]
    wide: bool,
}

/// An expression of a chart, and the name of its lines; `{{label}}` in it is a label's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardQuery {
    expr: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    legend: String,
}

/// Form of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ChartForm {
    /// Lines over the range.
    #[default]
    Graph,
    /// Labels and values at the moment.
    Table,
    /// The newest value, large.
    Stat,
}

/// Why a board is not kept or not found.
#[derive(Debug, PartialEq)]
pub(crate) enum BoardError {
    /// There is no such board.
    Missing,
    /// The name or the board makes no sense.
    Wrong(String),
    /// There are too many boards.
    Full,
    /// The disk failed.
    Failed(String),
}

impl Board {
    /// Reads a board from outside.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Board, BoardError> {
        let wrong = |why: String| Err(BoardError::Wrong(why));
        if bytes.len() > BOARD_MAX {
            return wrong(format!("it is longer than {BOARD_MAX} bytes"));
        }
        let board: Board = match serde_json::from_slice(bytes) {
            Ok(board) => board,
            Err(error) => return wrong(error.to_string()),
        };
        match board.fault() {
            Some(why) => wrong(why),
            None => Ok(board),
        }
    }

    /// Why it makes no sense.
    fn fault(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("version {} is not {VERSION}", self.version));
        }
        if is_long(&self.title) {
            return Some("its title is too long".into());
        }
        if self.charts.len() > CHARTS_MAX {
            return Some(format!("it has more than {CHARTS_MAX} charts"));
        }
        let faults = self.charts.iter().enumerate();
        let mut faults = faults.filter_map(|(n, chart)| Some((n, chart.fault()?)));
        faults
            .next()
            .map(|(n, why)| format!("chart {} {why}", n + 1))
    }

    /// The file.
    fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The answer.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl BoardChart {
    fn fault(&self) -> Option<&'static str> {
        let kinds = [
            !self.queries.is_empty(),
            !self.fields.is_empty(),
            !self.panel.is_empty(),
        ];
        if kinds.iter().filter(|is_given| **is_given).count() != 1 {
            return Some("has to have queries, fields or a panel, and one of them alone");
        }
        if self.queries.len() > LINES_MAX || self.fields.len() > LINES_MAX {
            return Some("has too many lines");
        }
        let short = [&self.title, &self.panel, &self.step, &self.unit];
        let legends = self.queries.iter().map(|query| &query.legend);
        if short.into_iter().chain(legends).any(|text| is_long(text)) {
            return Some("has a text that is too long");
        }
        let mut long = self.queries.iter().map(|query| &query.expr);
        let is_wrong = |text: &String| text.is_empty() || text.len() > EXPR_MAX;
        if long.any(is_wrong) || self.fields.iter().any(is_wrong) {
            return Some("has an empty or too long expression or field");
        }
        None
    }
}

fn is_long(text: &str) -> bool {
    text.chars().count() > TITLE_MAX
}

/// The folder of boards.
pub(crate) struct Boards {
    folder: PathBuf,
    /// Held while a board is written.
    writing: Mutex<()>,
}

impl Boards {
    /// The boards of a folder.
    pub(crate) fn new(folder: PathBuf) -> Boards {
        Boards {
            folder,
            writing: Mutex::default(),
        }
    }

    /// Names and titles, sorted by name. A file that is no board has an empty title.
    pub(crate) fn list(&self) -> Result<Vec<(String, String)>, BoardError> {
        let mut titles = Vec::new();
        for name in self.names()? {
            let title = match self.read(&name) {
                Ok(board) => board.title,
                Err(_) => String::new(),
            };
            titles.push((name, title));
        }
        Ok(titles)
    }

    fn names(&self) -> Result<Vec<String>, BoardError> {
        let mut names = Vec::new();
        let mut take = |name: &str, kind: NameKind| {
            let stem = name.strip_suffix(SUFFIX).filter(|stem| is_name(stem));
            if kind == NameKind::File && names.len() < BOARDS_MAX {
                names.extend(stem.map(String::from));
            }
        };
        RealDisk.list(&self.folder, &mut take).map_err(failed)?;
        names.sort();
        Ok(names)
    }

    /// Reads a board.
    pub(crate) fn read(&self, name: &str) -> Result<Board, BoardError> {
        let file = match RealDisk.open(&self.path(name)?, OpenMode::Read) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(BoardError::Missing);
            }
            file => file.map_err(failed)?,
        };
        let size = file.metadata().map_err(failed)?.size_bytes;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        // One byte more than a board has: a longer file is none.
        let mut bytes = vec![0; size.min(BOARD_MAX + 1)];
        let count = file.read_at(&mut bytes, 0).map_err(failed)?;
        bytes.truncate(count);
        Board::parse(&bytes)
    }

    /// Writes a board, in the place of that of its name.
    pub(crate) fn write(&self, name: &str, board: &Board) -> Result<(), BoardError> {
        let path = self.path(name)?;
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.names()?;
        if names.len() >= BOARDS_MAX && !names.iter().any(|known| known == name) {
            return Err(BoardError::Full);
        }
        let text = board.text();
        replace(&RealDisk, &path, text.as_bytes(), Sync::Now).map_err(failed)?;
        Ok(())
    }

    /// Removes a board.
    pub(crate) fn remove(&self, name: &str) -> Result<(), BoardError> {
        match RealDisk.unlink(&self.path(name)?) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(BoardError::Missing),
            done => done.map_err(failed),
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf, BoardError> {
        match is_name(name) {
            true => Ok(self.folder.join(format!("{name}{SUFFIX}"))),
            false => Err(BoardError::Wrong(format!(
                "the name {name:?} is not one of a-z, 0-9 and -, and at most {NAME_MAX} characters long"
            ))),
        }
    }
}

/// True for names that are also names of files and parts of addresses.
fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_good)
}

fn failed(error: std::io::Error) -> BoardError {
    BoardError::Failed(error.to_string())
}

/// Reads bytes as a board. One that is accepted is written and read again as the same.
#[cfg(feature = "testing")]
pub(crate) fn fuzz_board(bytes: &[u8]) {
    if let Ok(board) = Board::parse(bytes) {
        assert!(board.charts.len() <= CHARTS_MAX, "too many charts");
        let again = serde_json::from_str::<Board>(&board.text());
        assert_eq!(again.ok(), Some(board), "another board");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: &str = r#"{"version":1,"title":"Web <b>","charts":[
        {"title":"CPU","queries":[{"expr":"rate(node_cpu_seconds_total[1m])","legend":"{{mode}}"}],"step":"15s","wide":true},
        {"fields":["cpu.user","disk.util:*"]},{"panel":"memory"},
        {"queries":[{"expr":"node_load1"}],"form":"stat","unit":"s"}]}"#;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("kymo-boards-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_board_is_kept_as_it_is() {
        let folder = folder("kept");
        let boards = Boards::new(folder.clone());
        assert_eq!(boards.list(), Ok(Vec::new()));
        assert_eq!(boards.read("web"), Err(BoardError::Missing));
        let board = Board::parse(BOARD.as_bytes()).unwrap();
        boards.write("web", &board).unwrap();
        assert_eq!(boards.read("web"), Ok(board.clone()));
        assert_eq!(boards.list(), Ok(vec![("web".into(), "Web <b>".into())]));
        let empty = r#"{"version":1,"title":"","charts":[]}"#;
        let empty = Board::parse(empty.as_bytes()).unwrap();
        boards.write("web", &empty).unwrap();
        assert_eq!(boards.read("web"), Ok(empty));
        assert_eq!(
            std::fs::read_dir(&folder).unwrap().count(),
            1,
            "no other file is left"
        );
        // Somebody else's writing is no board, and harms none.
        std::fs::write(folder.join("odd.json"), "{").unwrap();
        std::fs::write(folder.join("Not A Name.json"), BOARD).unwrap();
        assert_eq!(boards.list().unwrap().len(), 2);
        assert!(matches!(boards.read("odd"), Err(BoardError::Wrong(_))));
        boards.remove("web").unwrap();
        assert_eq!(boards.remove("web"), Err(BoardError::Missing));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A file of the first version is read for ever.
    #[test]
    fn a_file_of_version_1() {
        let file = include_str!("../fixtures/board-1.json");
        let board = Board::parse(file.as_bytes()).unwrap();
        assert_eq!(board.text(), file);
    }

    #[test]
    fn names_are_no_paths() {
        let boards = Boards::new("/nowhere".into());
        for name in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "A",
            "a.b",
            "a b",
            "é",
            "a\0",
            &"x".repeat(65),
        ] {
            assert!(
                matches!(boards.read(name), Err(BoardError::Wrong(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn wrong_boards_are_refused() {
        let many = |count: usize| {
            let charts = vec![r#"{"panel":"cpu"}"#; count].join(",");
            format!(r#"{{"version":1,"title":"","charts":[{charts}]}}"#)
        };
        assert!(Board::parse(many(CHARTS_MAX).as_bytes()).is_ok());
        let long = "x".repeat(TITLE_MAX + 1);
        for (text, part) in [
            ("".to_string(), "EOF"),
            ("[]".into(), "invalid length"),
            (many(CHARTS_MAX + 1), "more than 200 charts"),
            (
                r#"{"version":2,"title":"","charts":[]}"#.into(),
                "version 2 is not 1",
            ),
            (
                r#"{"version":1,"title":"","charts":[{}]}"#.into(),
                "chart 1 has to have",
            ),
            (
                r#"{"version":1,"title":"","charts":[{"panel":"cpu","fields":["a.b"]}]}"#.into(),
                "one of them alone",
            ),
            (
                r#"{"version":1,"title":"","charts":[{"panel":"cpu"},{"queries":[{"expr":""}]}]}"#
                    .into(),
                "chart 2 has an empty",
            ),
            (
                r#"{"version":1,"title":"","charts":[{"panel":"cpu","x":1}]}"#.into(),
                "unknown field `x`",
            ),
            (
                format!(r#"{{"version":1,"title":"{long}","charts":[]}}"#),
                "title is too long",
            ),
            (
                format!(
                    r#"{{"version":1,"title":"","charts":[{{"panel":"cpu","title":"{long}"}}]}}"#
                ),
                "a text that is too long",
            ),
            (" ".repeat(BOARD_MAX + 1), "longer than"),
        ] {
            let Err(BoardError::Wrong(why)) = Board::parse(text.as_bytes()) else {
                panic!("{text}");
            };
            assert!(why.contains(part), "{text}: {why}");
        }
        // Each beginning of a board is refused or whole.
        for end in 0..BOARD.len() {
            let _refused = Board::parse(&BOARD.as_bytes()[..end]);
        }
    }
}
