//! Settings of `--export`: the set of names, and the form of values.

/// Number of times after which an unchanged value is sent again, as in collectl.
const TTL: u32 = 5;

/// Set of names for values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// `--export lexpr`.
    Lexpr,
    /// `--export graphite`.
    Graphite,
    /// `--export gexpr`.
    Gexpr(GangliaNames),
}

/// Use of Ganglia's own names in gexpr.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GangliaNames {
    /// No use.
    None,
    /// `g`: only values with a Ganglia name.
    Alone,
    /// `G`: Ganglia's name where there is one.
    Too,
}

/// Combination of several intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    /// Uses the last value.
    Last,
    Min,
    Max,
    Average,
    Total,
}

/// Settings of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    pub(crate) dialect: Dialect,
    /// Text in front of the host's name.
    pub(crate) before: String,
    /// Text behind the host's name.
    pub(crate) behind: String,
    /// Decimals of values whose column sets none.
    pub(crate) decimals: usize,
    /// `i=`: seconds that are combined into one value.
    pub(crate) every_secs: Option<u32>,
    pub(crate) fold: Fold,
    /// `co`: sends only changed values, and an unchanged one after `ttl` times.
    pub(crate) changed_only: bool,
    pub(crate) ttl: u32,
}

impl Export {
    /// Parses `lexpr[,f=N]`, or what follows the address in `graphite,HOST[:PORT]`: `b=BEFORE`, `p=BEHIND`, `f=N`.
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

    /// Sets an option; `None`: it is unknown.
    fn take(&mut self, word: &str) -> Option<()> {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse::<u32>().ok().filter(|n| *n > 0);
        let is_gexpr = matches!(self.dialect, Dialect::Gexpr(_));
        match (key, value.is_empty()) {
            // A file name, which the caller handles.
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
