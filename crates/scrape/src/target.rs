//! A target: one scrape after the other, each at its time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kymo_base::name::DisplayName;
use kymo_sys::clock::{Clock as _, RealClock, Stamp};
use kymo_sys::talk;
use kymo_wire::exposition_text::ExpositionFormat;
use kymo_wire::keeper::ScrapedTarget;

use super::beat::Beat;
use super::device::DeviceClient;
use super::fetch::{Fetched, Fetcher};
use super::intake::{Intake, ScrapeCounts};
use super::message::Message;
use super::outbox::Outbox;

/// A longer text is read on a thread of its own, so that other targets do not wait.
const LONG_TEXT: usize = 128 << 10;
/// Bytes of a reason in a message.
const REASON_MAX: usize = 500;

/// States of all targets.
#[derive(Clone, Default)]
pub(crate) struct States {
    targets: Arc<Mutex<TargetStates>>,
}

/// The states, and whether one has changed since they were taken.
#[derive(Default)]
struct TargetStates {
    all: Vec<ScrapedTarget>,
    has_changed: bool,
}

impl States {
    /// Adds a target; its number.
    pub(crate) fn add(&self, target: ScrapedTarget) -> usize {
        self.change(|states| {
            states.all.push(target);
            states.all.len() - 1
        })
    }

    /// All states, if one has changed since the last call.
    pub(crate) fn changed(&self) -> Option<Vec<ScrapedTarget>> {
        let mut states = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut states.has_changed).then(|| states.all.clone())
    }

    fn change<T>(&self, change: impl FnOnce(&mut TargetStates) -> T) -> T {
        let mut states = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        states.has_changed = true;
        change(&mut states)
    }
}

/// The way to ask a target.
pub(crate) enum TargetClient {
    /// HTTP.
    Http(Box<Fetcher>),
    /// SNMP.
    Device(Box<DeviceClient>),
}

impl TargetClient {
    async fn fetch(&mut self) -> Result<Fetched, String> {
        match self {
            TargetClient::Http(fetcher) => fetcher.fetch().await,
            TargetClient::Device(device) => Ok(Fetched {
                format: ExpositionFormat::Prometheus,
                text: device.poll().await?,
            }),
        }
    }
}

/// A target and its client.
pub(crate) struct Target {
    /// The URL, for messages.
    pub(crate) name: String,
    /// Times of its scrapes.
    pub(crate) beat: Beat,
    /// Client of the target.
    pub(crate) client: TargetClient,
    /// Intake of its samples; a long text is read on another thread.
    pub(crate) intake: Arc<Mutex<Intake>>,
    /// States of all targets, and the number of this one.
    pub(crate) state: (States, usize),
    /// The way to the keeper.
    pub(crate) outbox: Outbox,
    /// True if the last scrape failed.
    pub(crate) is_down: bool,
}

/// Result of a scrape.
struct Scraped {
    message: Message,
    counts: ScrapeCounts,
    error: String,
}

impl Target {
    /// Scrapes for ever.
    pub(crate) async fn run(mut self) {
        loop {
            let now_ns = RealClock.now().real_ns;
            let due_ns = self.beat.after(now_ns);
            let pause_ns = u64::try_from(due_ns.saturating_sub(now_ns)).unwrap_or(0);
            tokio::time::sleep(Duration::from_nanos(pause_ns)).await;
            self.scrape(due_ns).await;
        }
    }

    async fn scrape(&mut self, due_ns: i64) {
        let begun = RealClock.now();
        let stamp_ms = Beat::stamp_ms(due_ns, begun.real_ns);
        let scraped = match self.client.fetch().await {
            Ok(fetched) => self.take(fetched, stamp_ms).await,
            Err(why) => fail(&self.intake, stamp_ms, why),
        };
        let duration_s = since_s(begun);
        self.note(&scraped, stamp_ms, duration_s);
        let parts = self.report(scraped, stamp_ms, duration_s);
        self.outbox.send(&self.name, parts);
    }

    async fn take(&self, fetched: Fetched, stamp_ms: i64) -> Scraped {
        let intake = self.intake.clone();
        if fetched.text.len() < LONG_TEXT {
            return take(&intake, &fetched, stamp_ms);
        }
        let work = tokio::task::spawn_blocking(move || take(&intake, &fetched, stamp_ms));
        let taken = work.await;
        let failed = |_| fail(&self.intake, stamp_ms, "its text cannot be read".into());
        taken.unwrap_or_else(failed)
    }

    /// Adds samples about the scrape itself.
    fn report(&self, scraped: Scraped, stamp_ms: i64, duration_s: f64) -> Vec<Vec<u8>> {
        let intake = self.intake.lock().unwrap_or_else(PoisonError::into_inner);
        let mut message = scraped.message;
        let counts = &scraped.counts;
        for (metric, value) in [
            ("up", if scraped.error.is_empty() { 1.0 } else { 0.0 }),
            ("scrape_duration_seconds", duration_s),
            ("scrape_samples_scraped", number(counts.scraped)),
            ("scrape_samples_post_metric_relabeling", number(counts.kept)),
            ("scrape_series_added", number(counts.added)),
        ] {
            intake.report(metric, stamp_ms, value, &mut message);
        }
        message.finish()
    }

    /// Notes the state of the target, and says when it goes and comes back.
    fn note(&mut self, scraped: &Scraped, stamp_ms: i64, duration_s: f64) {
        let (states, at) = &self.state;
        states.change(|states| {
            if let Some(state) = states.all.get_mut(*at) {
                state.scraped_ms = stamp_ms;
                state.duration_s = duration_s;
                state.samples = scraped.counts.scraped;
                state.error.clone_from(&scraped.error);
            }
        });
        let is_down = !scraped.error.is_empty();
        let name = DisplayName(self.name.as_bytes());
        match (self.is_down, is_down) {
            (false, true) => {
                let why = &scraped.error;
                talk::say(format_args!("kymo: cannot scrape {name}: {why}"));
            }
            (true, false) => talk::say(format_args!("kymo: scrape {name}: it answers again")),
            (false, false) | (true, true) => {}
        }
        self.is_down = is_down;
    }
}

fn take(intake: &Mutex<Intake>, fetched: &Fetched, stamp_ms: i64) -> Scraped {
    let taken = intake.lock().unwrap_or_else(PoisonError::into_inner).take(
        fetched.format,
        &fetched.text,
        stamp_ms,
    );
    match taken {
        Ok((message, counts)) => Scraped {
            message,
            counts,
            error: String::new(),
        },
        Err(why) => fail(intake, stamp_ms, why),
    }
}

fn fail(intake: &Mutex<Intake>, stamp_ms: i64, why: String) -> Scraped {
    let mut intake = intake.lock().unwrap_or_else(PoisonError::into_inner);
    // A part of the reason may come from the target.
    let mut error = DisplayName(why.as_bytes()).to_string();
    error.truncate(error.floor_char_boundary(REASON_MAX));
    Scraped {
        message: intake.fail(stamp_ms),
        counts: ScrapeCounts::default(),
        error,
    }
}

fn since_s(begun: Stamp) -> f64 {
    let passed_ns = RealClock.mono_ns().saturating_sub(begun.mono_ns);
    Duration::from_nanos(passed_ns).as_secs_f64()
}

/// Exact up to 2^53.
fn number(count: u64) -> f64 {
    count as f64
}
