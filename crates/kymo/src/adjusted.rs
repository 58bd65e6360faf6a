//! What is played as if it had been recorded at another time, or with other names of users: `--offsettime`, `--passwd`.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_query::source::{Moment, Source, Step};

use crate::shape::Shape;

/// Longest file of users that is read.
const PASSWD_MAX: u64 = 16 << 20;

/// A source whose times and users are as asked for.
pub(crate) struct Adjusted {
    source: Box<dyn Source>,
    offset_ns: i64,
    users: Vec<(String, String)>,
    /// The facts with these users, and the stamp of those without.
    context: Option<(u64, Context)>,
}

impl Adjusted {
    /// `source` as the switches say.
    pub(crate) fn new(source: Box<dyn Source>, shape: &Shape) -> Result<Adjusted> {
        let secs = shape.offsettime.unwrap_or(0);
        let offset_ns = secs.checked_mul(1_000_000_000);
        let users = match &shape.passwd {
            Some(path) => users(path)?,
            None => Vec::new(),
        };
        Ok(Adjusted {
            source,
            offset_ns: offset_ns
                .with_context(|| format!("cannot use --offsettime {secs}: too far"))?,
            users,
            context: None,
        })
    }

    fn moved(&self, moment: Moment) -> Moment {
        Moment {
            real_ns: moment.real_ns.saturating_add(self.offset_ns),
            ..moment
        }
    }

    fn note_users(&mut self) {
        let facts = self.source.context();
        let known = self.context.as_ref().map(|(stamp, _)| *stamp);
        if self.users.is_empty() || known == Some(facts.stamp()) {
            return;
        }
        let mut context = facts.clone();
        for (uid, name) in &self.users {
            context.set(&format!("uid.{uid}"), name);
        }
        self.context = Some((facts.stamp(), context));
    }
}

impl Source for Adjusted {
    fn next(&mut self) -> Result<Option<Step>, String> {
        let step = self.source.next()?;
        self.note_users();
        Ok(step.map(|step| match step {
            Step::Sample(moment) => Step::Sample(self.moved(moment)),
            Step::Event(moment, text) => Step::Event(self.moved(moment), text),
            other => other,
        }))
    }

    fn tracks(&self) -> &Tracks {
        self.source.tracks()
    }

    fn context(&self) -> &Context {
        match &self.context {
            Some((_, context)) => context,
            None => self.source.context(),
        }
    }

    fn stream(&self) -> usize {
        self.source.stream()
    }
}

/// Numbers and names of users in a file as /etc/passwd.
pub(crate) fn users(path: &Path) -> Result<Vec<(String, String)>> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(PASSWD_MAX).read_to_string(&mut text))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let user = |line: &str| {
        let mut parts = line.split(':');
        let name = parts.next()?.to_string();
        let uid = parts.nth(1)?;
        uid.parse::<u32>().ok()?;
        Some((uid.to_string(), name))
    };
    Ok(text.lines().filter_map(user).collect())
}
