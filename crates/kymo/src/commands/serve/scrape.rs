//! `[[scrape]]`: the process of `kymo serve` that scrapes targets, and writes through the keeper. It reads no file: the
//! guardian hands it passwords, tokens and certificates.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_scrape::{
    Credentials, Scheme, ScrapeJob, ScrapeOrder, ScrapeUrl, Secret, TlsTexts, check_tls,
};
use kymo_sys::privilege::{Account, Memory};

use super::{poller, sockets};
use crate::commands::serve::guardian::Scraper;
use crate::config::{Config, Scrape};

/// Most bytes of a file of passwords or certificates.
const FILE_MAX: u64 = 4 << 20;
/// Places of the authorities' certificates of Debian, Fedora, SUSE and Alpine.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Plans the process; `None`: no target is configured.
pub(super) fn plan(config: &Config, dir: &Path, hub: Option<&Account>) -> Result<Option<Scraper>> {
    if config.scrape.is_empty() {
        return Ok(None);
    }
    let configured = config.scrape.clone();
    Ok(Some(Scraper {
        order: ScrapeOrder {
            keeper: dir.join(sockets::WRITES),
            jobs: jobs(&config.scrape)?,
        },
        jobs: Box::new(move || jobs(&configured)),
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
    let tls = tls(job)?;
    if !tls.authorities.is_empty() {
        check_tls(&tls).map_err(words)?;
    }
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
        credentials: credentials(job)?,
        tls,
    })
}

fn credentials(job: &Scrape) -> Result<Credentials> {
    let secret = |path: &PathBuf| -> Result<Secret> { Ok(Secret::of_file(&read(path)?)) };
    match (&job.user, &job.password_file, &job.token_file) {
        (Some(_), _, Some(_)) => bail!("it has a user and a token_file: a target is shown one"),
        (Some(user), Some(file), None) => Ok(Credentials::Basic {
            user: user.clone(),
            password: secret(file)?,
        }),
        (_, _, Some(file)) => Ok(Credentials::Bearer {
            token: secret(file)?,
        }),
        (_, _, None) => Ok(Credentials::None),
    }
}

fn tls(job: &Scrape) -> Result<TlsTexts> {
    let needs_tls = job.urls.iter().any(|url| {
        let url = ScrapeUrl::parse(url);
        url.is_ok_and(|url| url.scheme() == Scheme::Https)
    });
    if !needs_tls {
        return Ok(TlsTexts::default());
    }
    let authorities = match &job.tls_ca {
        Some(path) => read(path)?,
        None => system_authorities()?,
    };
    let optional = |path: &Option<PathBuf>| path.as_deref().map_or(Ok(String::new()), read);
    Ok(TlsTexts {
        authorities,
        cert: optional(&job.tls_cert)?,
        key: Secret::of_file(&optional(&job.tls_key)?),
        server_name: job.tls_server_name.clone().unwrap_or_default(),
    })
}

fn system_authorities() -> Result<String> {
    let mut places = AUTHORITIES.iter().map(Path::new);
    match places.find(|place| place.exists()) {
        Some(place) => read(place),
        None => bail!("there are no certificates of authorities on this system; name some: tls_ca"),
    }
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let cannot = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let mut file = File::open(path).with_context(cannot)?.take(FILE_MAX);
    file.read_to_string(&mut text).with_context(cannot)?;
    Ok(text)
}
