//! `[[scrape]]` and `[[device]]`: the process of `kymo serve` that scrapes targets and polls devices, and writes through the keeper. It reads no file: the
//! guardian hands it passwords, tokens and certificates.

use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_scrape::{Scheme, ScrapeJob, ScrapeOrder, ScrapeUrl};
use kymo_sys::privilege::{Account, Memory};

use super::{access, devices, poller, sockets};
use crate::commands::serve::guardian::Scraper;
use crate::config::{Config, Scrape};

/// Plans the process; `None`: no target is configured.
pub(super) fn plan(config: &Config, dir: &Path, hub: Option<&Account>) -> Result<Option<Scraper>> {
    if config.scrape.is_empty() && config.device.is_empty() {
        return Ok(None);
    }
    let (configured, keeper) = (config.clone(), dir.join(sockets::WRITES));
    let order = move || -> Result<ScrapeOrder> {
        Ok(ScrapeOrder {
            keeper: keeper.clone(),
            jobs: jobs(&configured.scrape)?,
            devices: devices::jobs(&configured)?,
        })
    };
    Ok(Some(Scraper {
        order: order()?,
        read_again: Box::new(order),
        role: poller::role(hub.cloned(), hub, Memory::Unlimited),
    }))
}

/// The jobs, with the contents of their files.
fn jobs(configured: &[Scrape]) -> Result<Vec<ScrapeJob>> {
    let jobs = configured.iter().map(|job| {
        let name = &job.job;
        scrape_job(job).with_context(|| format!("cannot scrape {name}"))
    });
    jobs.collect()
}

fn scrape_job(job: &Scrape) -> Result<ScrapeJob> {
    let words = anyhow::Error::msg::<String>;
    let needs_tls = job.urls.iter().any(|url| {
        let url = ScrapeUrl::parse(url);
        url.is_ok_and(|url| url.scheme() == Scheme::Https)
    });
    Ok(ScrapeJob {
        name: job.job.clone(),
        urls: job.urls.clone(),
        interval_ms: job.interval_ms().map_err(words)?,
        timeout_ms: job.timeout_ms().map_err(words)?,
        labels: job.labels.clone(),
        relabel: job.relabel.clone(),
        honor_labels: job.honor_labels,
        honor_timestamps: job.honor_timestamps,
        samples: job.samples,
        credentials: access::credentials(job.access())?,
        tls: access::tls(job.access(), needs_tls)?,
    })
}
