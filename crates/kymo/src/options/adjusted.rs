//! Recordings played with another time, or with other facts of the machine: `--offsettime`, `--passwd`,
//! collectl.conf's `DefNetSpeed`.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::subsystem::net::USUAL_SPEED_FACT;
use kymo_query::source::{Moment, Source, Step};

use crate::options::shape::Shape;

/// Most bytes that are read of a file of users.
const PASSWD_MAX: u64 = 16 << 20;

/// A source with adjusted times and facts.
pub(crate) struct Adjusted {
    source: Box<dyn Source>,
    offset_ns: i64,
    facts: Vec<(String, String)>,
    /// The adjusted context, and the stamp of the original one.
    context: Option<(u64, Context)>,
}

impl Adjusted {
    /// Adjusts `source` by the switches.
    pub(crate) fn new(source: Box<dyn Source>, shape: &Shape) -> Result<Adjusted> {
        let secs = shape.offsettime.unwrap_or(0);
        let offset_ns = secs.checked_mul(1_000_000_000);
        Ok(Adjusted {
            source,
            offset_ns: offset_ns
                .with_context(|| format!("cannot use --offsettime {secs}: too far"))?,
            facts: facts(shape)?,
            context: None,
        })
    }

    fn moved(&self, moment: Moment) -> Moment {
        Moment {
            real_ns: moment.real_ns.saturating_add(self.offset_ns),
            ..moment
        }
    }

    fn note_facts(&mut self) {
        let recorded = self.source.context();
        let known = self.context.as_ref().map(|(stamp, _)| *stamp);
        if self.facts.is_empty() || known == Some(recorded.stamp()) {
            return;
        }
        let mut context = recorded.clone();
        for (name, value) in &self.facts {
            context.set(name, value);
        }
        self.context = Some((recorded.stamp(), context));
    }
}

impl Source for Adjusted {
    fn next(&mut self) -> Result<Option<Step>, String> {
        let step = self.source.next()?;
        self.note_facts();
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

/// Facts that the command line replaces.
pub(crate) fn facts(shape: &Shape) -> Result<Vec<(String, String)>> {
    let mut facts = match &shape.passwd {
        Some(path) => users(path)?,
        None => Vec::new(),
    };
    let speed = shape.defnetspeed.map(|speed| speed.to_string());
    facts.extend(speed.map(|speed| (USUAL_SPEED_FACT.to_string(), speed)));
    Ok(facts)
}

/// Names of users in a file like /etc/passwd.
fn users(path: &Path) -> Result<Vec<(String, String)>> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(PASSWD_MAX).read_to_string(&mut text))
        .with_context(|| format!("cannot read {}", path.display()))?;
    let user = |line: &str| {
        let mut parts = line.split(':');
        let name = parts.next()?.to_string();
        let uid = parts.nth(1)?;
        uid.parse::<u32>().ok()?;
        Some((format!("uid.{uid}"), name))
    };
    Ok(text.lines().filter_map(user).collect())
}
