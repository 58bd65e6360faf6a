//! What `--export` asks for: whose names, and how values are written.

/// Whose names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// `--export lexpr`.
    Lexpr,
    /// `--export graphite`.
    Graphite,
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
}

impl Export {
    /// Reads `lexpr[,f=N]`, or of `graphite,HOST[:PORT]` what is behind the address: `b=BEFORE`, `p=BEHIND`, `f=N`.
    pub fn parse(name: &str, words: &[&str]) -> Result<Export, String> {
        let dialect = match name {
            "lexpr" => Dialect::Lexpr,
            "graphite" => Dialect::Graphite,
            "gexpr" => {
                return Err(
                    "cannot use --export gexpr: Ganglia's packets are not sent; graphite's lines are".into(),
                );
            }
            "proctree" => {
                return Err(
                    "cannot use --export proctree: the page has the processes of any moment".into(),
                );
            }
            _ => {
                return Err(format!(
                    "cannot use --export {}: there are lexpr, graphite and vmstat",
                    name.escape_debug()
                ));
            }
        };
        let mut export = Export {
            dialect,
            before: String::new(),
            behind: String::new(),
            decimals: 0,
        };
        for word in words {
            let wrong = || {
                format!(
                    "cannot use --export {name},{}: it takes b= f= p=",
                    word.escape_debug()
                )
            };
            let (key, value) = word.split_once('=').ok_or_else(wrong)?;
            match key {
                "b" => export.before = value.into(),
                "p" => export.behind = value.into(),
                "f" => {
                    let decimals = value.parse().ok().filter(|n| *n <= 9);
                    export.decimals = decimals.ok_or_else(wrong)?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(export)
    }
}
