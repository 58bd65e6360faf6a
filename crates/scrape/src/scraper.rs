//! All targets of all jobs, on one thread with a few helpers for names and long texts.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kymo_sys::machine;
use kymo_wire::keeper::{SCRAPED_MAX, ScrapedTarget};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::beat::Beat;
use super::connection::{Shared, TlsClient};
use super::device::{DEVICE_SAMPLES_MAX, DeviceClient, DeviceJob};
use super::fetch::Fetcher;
use super::intake::{Intake, IntakeRules};
use super::job::ScrapeJob;
use super::outbox::Outbox;
use super::relabel::Relabeling;
use super::target::{States, Target, TargetClient};
use super::tls::client_config;
use super::url::{Scheme, ScrapeUrl};

/// Pause between two reports of the targets' states.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Threads for names and long texts.
const THREADS_MAX: usize = 36;
/// Stack of such a thread, in bytes.
const STACK_BYTES: usize = 512 << 10;
/// Memory of the process besides its targets, in bytes.
const OWN_BYTES: u64 = 384 << 20;
/// Memory of a target: two texts, and messages.
const TARGET_BYTES: u64 = 48 << 20;
/// Memory of a series of a target.
const SERIES_BYTES: u64 = 1 << 10;
/// Most memory of the process.
const ALL_BYTES: u64 = 16 << 30;

/// The guardian's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScrapeOrder {
    /// The keeper's socket for processes that write.
    pub keeper: PathBuf,
    /// The jobs.
    pub jobs: Vec<ScrapeJob>,
    /// The devices.
    pub devices: Vec<DeviceJob>,
}

/// Memory that the process may have: a part for each target, so that no target can take the others' part.
pub fn memory_bytes(order: &ScrapeOrder) -> u64 {
    let part = |targets: usize, series: u64| {
        let targets = u64::try_from(targets).unwrap_or(u64::MAX);
        targets.saturating_mul(TARGET_BYTES.saturating_add(series.saturating_mul(SERIES_BYTES)))
    };
    let jobs = order.jobs.iter();
    // No text of 10 MiB has more series.
    let jobs = jobs.map(|job| part(job.urls.len(), job.samples.min(super::job::SAMPLES_MAX)));
    let devices = part(order.devices.len(), DEVICE_SAMPLES_MAX);
    let all = jobs.fold(OWN_BYTES.saturating_add(devices), u64::saturating_add);
    all.min(ALL_BYTES)
}

/// Scrapes all targets for ever. An error means that it cannot begin.
pub fn scrape(order: ScrapeOrder) -> Result<(), String> {
    let cannot = |error: io::Error| {
        let cause = kymo_base::errno::strerror(&error);
        format!("cannot start a thread: {cause}")
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS_MAX)
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(cannot)?;
    let outbox = Outbox::start(order.keeper).map_err(cannot)?;
    let (shared, states, host) = (Shared::default(), States::default(), machine::host());
    let mut targets = Vec::new();
    for job in &order.jobs {
        targets.extend(targets_of(job, &host, &shared, &states, &outbox)?);
    }
    for job in &order.devices {
        targets.push(device(job, &host, &shared, &states, &outbox)?);
    }
    targets.truncate(SCRAPED_MAX);
    runtime.block_on(async {
        for target in targets {
            tokio::spawn(target.run());
        }
        loop {
            states
                .changed()
                .into_iter()
                .for_each(|all| outbox.report(all));
            sleep(REPORT_EVERY).await;
        }
    })
}

fn targets_of(
    job: &ScrapeJob,
    host: &str,
    shared: &Shared,
    states: &States,
    outbox: &Outbox,
) -> Result<Vec<Target>, String> {
    let cannot = |why: String| format!("cannot scrape {}: {why}", job.name);
    let relabeling = Arc::new(Relabeling::new(&job.relabel).map_err(cannot)?);
    let urls = job.urls.iter().map(|url| ScrapeUrl::parse(url));
    let urls: Vec<ScrapeUrl> = urls.collect::<Result<_, _>>().map_err(cannot)?;
    let needs_tls = urls.iter().any(|url| url.scheme() == Scheme::Https);
    let has_authorities = !job.tls.authorities.is_empty();
    // A target in the clear may redirect to one with TLS.
    let tls = match needs_tls || has_authorities {
        false => None,
        true => Some(TlsClient {
            config: client_config(&job.tls).map_err(cannot)?,
            server_name: job.tls.server_name.clone(),
        }),
    };
    let target = |url: ScrapeUrl| {
        let (name, labels) = (
            url.to_string(),
            labels_of(&job.labels, &job.name, url.instance()),
        );
        let mut place = vec![host, job.name.as_str(), name.as_str()];
        place.extend(labels.iter().map(|(_, value)| value.as_str()));
        let beat = Beat::new(job.interval_ms, &place);
        let timeout = Duration::from_millis(job.timeout_ms);
        let fetcher = Fetcher::new(url, &job.credentials, tls.clone(), shared.clone(), timeout);
        let at = states.add(ScrapedTarget {
            job: job.name.clone(),
            url: name.clone(),
            labels: labels.clone(),
            interval_ms: job.interval_ms,
            timeout_ms: job.timeout_ms,
            ..ScrapedTarget::default()
        });
        let intake = Intake::new(IntakeRules {
            labels,
            relabeling: relabeling.clone(),
            honor_labels: job.honor_labels,
            honor_timestamps: job.honor_timestamps,
            samples_max: job.samples,
        });
        Ok(Target {
            client: TargetClient::Http(Box::new(fetcher.map_err(cannot)?)),
            name,
            beat,
            intake: Arc::new(Mutex::new(intake)),
            state: (states.clone(), at),
            outbox: outbox.clone(),
            is_down: false,
        })
    };
    urls.into_iter().map(target).collect()
}

fn device(
    job: &DeviceJob,
    host: &str,
    shared: &Shared,
    states: &States,
    outbox: &Outbox,
) -> Result<Target, String> {
    let cannot = |why: String| format!("cannot poll {}: {why}", job.address);
    let relabeling = Arc::new(Relabeling::new(&job.relabel).map_err(cannot)?);
    let client = DeviceClient::new(job, shared.clone()).map_err(cannot)?;
    let labels = labels_of(&job.labels, "snmp", job.instance());
    let name = client.url();
    let mut place = vec![host, name.as_str()];
    place.extend(labels.iter().map(|(_, value)| value.as_str()));
    let at = states.add(ScrapedTarget {
        job: label(&labels, "job"),
        url: name.clone(),
        labels: labels.clone(),
        interval_ms: job.interval_ms,
        timeout_ms: job.timeout_ms,
        ..ScrapedTarget::default()
    });
    Ok(Target {
        beat: Beat::new(job.interval_ms, &place),
        client: TargetClient::Device(Box::new(client)),
        name,
        intake: Arc::new(Mutex::new(Intake::new(IntakeRules {
            labels,
            relabeling,
            honor_labels: false,
            honor_timestamps: false,
            samples_max: DEVICE_SAMPLES_MAX,
        }))),
        state: (states.clone(), at),
        outbox: outbox.clone(),
        is_down: false,
    })
}

fn label(labels: &[(String, String)], name: &str) -> String {
    let found = labels.iter().find(|(own, _)| own == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

/// Labels of a target: the job, the instance, and those of the configuration, which win.
fn labels_of(
    configured: &BTreeMap<String, String>,
    job: &str,
    instance: String,
) -> Vec<(String, String)> {
    let mut labels = configured.clone();
    labels.entry("job".into()).or_insert_with(|| job.into());
    labels.entry("instance".into()).or_insert(instance);
    labels.retain(|_, value| !value.is_empty());
    labels.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Credentials, TlsTexts};

    fn job(urls: usize, samples: u64) -> ScrapeJob {
        ScrapeJob {
            name: "j".into(),
            urls: vec!["http://a:1".into(); urls],
            interval_ms: 15_000,
            timeout_ms: 10_000,
            labels: [
                ("instance".into(), "web".into()),
                ("x".into(), String::new()),
            ]
            .into(),
            relabel: Vec::new(),
            honor_labels: false,
            honor_timestamps: true,
            samples,
            credentials: Credentials::None,
            tls: TlsTexts::default(),
        }
    }

    #[test]
    fn each_target_has_memory_of_its_own() {
        let order = |jobs| ScrapeOrder {
            keeper: PathBuf::new(),
            jobs,
            devices: Vec::new(),
        };
        let of = |urls| memory_bytes(&order(vec![job(urls, 1000), job(1, 1000)]));
        assert!(of(2) - of(1) > 2 * (10 << 20), "two texts");
        assert_eq!(of(2) - of(1), of(3) - of(2));
        assert_eq!(memory_bytes(&order(vec![job(1000, 1_000_000)])), ALL_BYTES);
    }

    #[test]
    fn labels_of_the_configuration_win() {
        let labels = labels_of(&job(1, 1).labels, "j", "a:1".into());
        let expected = [("instance", "web"), ("job", "j")];
        assert_eq!(
            labels,
            expected.map(|(name, value)| (name.into(), value.into()))
        );
    }
}
