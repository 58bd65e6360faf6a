//! What `--export` asks for: whose names, and how values are written.

/// How often a value that does not change is sent all the same, as collectl.
const TTL: u32 = 5;

/// Whose names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// `--export lexpr`.
    Lexpr,
    /// `--export graphite`.
    Graphite,
    /// `--export gexpr`.
    Gexpr(GangliaNames),
}

/// Whether gexpr's names are those of Ganglia itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GangliaNames {
    /// None.
    None,
    /// `g`: they are, and what Ganglia has no name for is left out.
    Alone,
    /// `G`: where Ganglia has one.
    Too,
}

/// What becomes of several intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    /// The last one counts.
    Last,
    Min,
    Max,
    Average,
    Total,
}

/// What is exported, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    pub(crate) dialect: Dialect,
    /// What stands before the host's name.
    pub(crate) before: String,
    /// And behind it.
    pub(crate) behind: String,
    /// Decimals of all values that have none of their own.
    pub(crate) decimals: usize,
    /// `i=`: seconds of what is put together.
    pub(crate) every_secs: Option<u32>,
    pub(crate) fold: Fold,
    /// `co`: only values that have changed, and others after that number of times.
    pub(crate) changed_only: bool,
    pub(crate) ttl: u32,
}

impl Export {
    /// Reads `lexpr[,f=N]`, or of `graphite,HOST[:PORT]` what is behind the address: `b=BEFORE`, `p=BEHIND`, `f=N`.
    pub fn parse(name: &str, words: &[&str]) -> Result<Export, String> {
        let dialect = match name {
            "lexpr" => Dialect::Lexpr,
            "graphite" => Dialect::Graphite,
            "gexpr" => Dialect::Gexpr(GangliaNames::None),
            _ => {
                return Err(format!(
                    "cannot use --export {}: there are lexpr, graphite, gexpr, proctree and vmstat",
                    name.escape_debug()
                ));
            }
        };
        let mut export = Export {
            dialect,
            before: String::new(),
            behind: String::new(),
            decimals: 0,
            every_secs: None,
            fold: Fold::Last,
            changed_only: false,
            ttl: TTL,
        };
        for word in words {
            let done = export.take(word);
            done.ok_or_else(|| {
                format!(
                    "cannot use --export {name},{}: it takes i=N co ttl=N min max avg tot, {}",
                    word.escape_debug(),
                    match dialect {
                        Dialect::Gexpr(_) => "g or G",
                        _ => "b= f=N p=",
                    }
                )
            })?;
        }
        match export.fold != Fold::Last && export.every_secs.is_none() {
            true => Err(format!(
                "cannot use --export {name}: min, max, avg and tot take i=SECONDS"
            )),
            false => Ok(export),
        }
    }

    /// Takes in an option; `None`: there is no such.
    fn take(&mut self, word: &str) -> Option<()> {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse::<u32>().ok().filter(|n| *n > 0);
        let is_gexpr = matches!(self.dialect, Dialect::Gexpr(_));
        match (key, value.is_empty()) {
            // A file, which is no matter of formats.
            ("f", false) if self.dialect == Dialect::Lexpr && value.parse::<usize>().is_err() => {}
            ("b", _) if !is_gexpr => self.before = value.into(),
            ("p", _) if !is_gexpr => self.behind = value.into(),
            ("f", _) if !is_gexpr => self.decimals = value.parse().ok().filter(|n| *n <= 9)?,
            ("g", true) if is_gexpr => self.dialect = Dialect::Gexpr(GangliaNames::Alone),
            ("G", true) if is_gexpr => self.dialect = Dialect::Gexpr(GangliaNames::Too),
            ("i", _) => self.every_secs = Some(number()?),
            ("ttl", _) => self.ttl = number()?,
            ("co", true) => self.changed_only = true,
            (key, true) if self.fold == Fold::Last => {
                self.fold = match key {
                    "min" => Fold::Min,
                    "max" => Fold::Max,
                    "avg" => Fold::Average,
                    "tot" => Fold::Total,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }
}
