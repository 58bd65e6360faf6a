//! Requests of the keeper's protocol, asked of the engine by HTTP: series by `series`, samples by `query` of a selector with a
//! range, which gives them as they are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use form_urlencoded::Serializer;
use kymo_base::label_set;
use kymo_series::{Labels, Sample};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{
    Answer, Find, FoundSeries, KeeperRequest, LabelsOf, MetricFamily, SamplesOf, SamplesPiece,
};

use super::api::{self, Description, LabelTexts, Matrix};
use super::client::{Client, Endpoint, Failure};
use super::known::KnownSeries;
use super::order::REQUESTS_MAX;
use super::selector;

/// Series, or texts, of a frame.
const FRAME_SERIES: usize = 1024;
/// Samples of a frame.
const FRAME_SAMPLES: usize = 64 << 10;
/// Series of a request of HTTP for samples.
const TOGETHER: usize = 250;
/// Series that one question may find: of a few such questions all are known.
const FOUND_MAX: usize = 100_000;
/// Samples that one request may read.
const SAMPLES_MAX: u64 = 10_000_000;
/// Shortest range that is asked for in two halves when its samples are too many.
const HALVED_MS: i64 = 60_000;
/// Times that engines take: from 1970 to an hour from now.
const AHEAD_MS: i64 = 3_600_000;

/// State that all clients share.
#[derive(Clone)]
pub(crate) struct SharedState {
    known: Arc<Mutex<KnownSeries>>,
    drop_labels: Arc<Vec<String>>,
}

impl SharedState {
    /// Nothing is known; series lose these labels.
    pub(crate) fn new(drop_labels: Vec<String>) -> SharedState {
        SharedState {
            known: Arc::default(),
            drop_labels: Arc::new(drop_labels),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownSeries> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn labels(&self, of: &LabelTexts) -> Option<Labels> {
        api::labels(of, &self.drop_labels)
    }
}

/// Questions of one client.
pub(crate) struct Questions {
    client: Client,
    shared: SharedState,
    /// Why parts of the answer are missing.
    missing: BTreeSet<String>,
}

impl Questions {
    /// Questions that this client sends.
    pub(crate) fn new(client: Client, shared: SharedState) -> Questions {
        Questions {
            client,
            shared,
            missing: BTreeSet::new(),
        }
    }

    /// The frames of an answer.
    pub(crate) async fn answer(&mut self, request: &KeeperRequest) -> Vec<Answer> {
        self.missing.clear();
        let answered = match request {
            KeeperRequest::Find(find) => self.find(find).await,
            KeeperRequest::Samples(of) => self.samples(of).await,
            KeeperRequest::Labels(of) => self.labels(of).await,
            KeeperRequest::Families { metric } => self.families(metric).await,
            KeeperRequest::Watched => return vec![Answer::Watched(false)],
            _other => Err("it answers questions for series alone".into()),
        };
        match answered {
            Ok(mut frames) => {
                let missing = std::mem::take(&mut self.missing);
                frames.splice(0..0, missing.into_iter().map(Answer::Missing));
                frames
            }
            Err(why) => vec![Answer::Refused(format!("cannot ask the upstream: {why}"))],
        }
    }

    async fn ask(&mut self, endpoint: &Endpoint, form: &str) -> Result<Vec<u8>, String> {
        let answer = self.client.ask(endpoint, form).await;
        answer.map_err(|failure| failure.to_string())
    }

    async fn find(&mut self, find: &Find) -> Result<Vec<Answer>, String> {
        let series_max = FOUND_MAX.min(usize::try_from(find.series_max).unwrap_or(usize::MAX));
        let limit = series_max.saturating_add(1).to_string();
        let form = form_of(find, &[("limit", &limit)])?;
        let body = self.ask(&Endpoint::Posted("series"), &form).await?;
        let answer = api::read::<Vec<LabelTexts>>(&body)?;
        self.missing.extend(answer.warnings);
        let labels = answer.data.iter().map(|of| self.shared.labels(of));
        let labels: Vec<Option<Labels>> = labels.collect();
        let strange = labels.iter().filter(|of| of.is_none()).count();
        if strange > 0 {
            let text =
                format!("{strange} series of the upstream have labels that kymo cannot keep");
            self.missing.insert(text);
        }
        // Without some of their labels several series may be one.
        let labels: BTreeSet<Labels> = labels.into_iter().flatten().collect();
        if labels.len() > series_max {
            return Err(format!(
                "the question selects more than {series_max} of its series; narrow it"
            ));
        }
        let mut known = self.shared.known();
        let found = labels.into_iter().map(|labels| FoundSeries {
            id: known.add(&labels),
            labels,
        });
        let found: Vec<FoundSeries> = found.collect();
        Ok(frames(&found, Answer::Found))
    }

    async fn labels(&mut self, of: &LabelsOf) -> Result<Vec<Answer>, String> {
        let drop_labels = self.shared.drop_labels.clone();
        if drop_labels.contains(&of.label) {
            return Ok(frames(&[], Answer::Labels));
        }
        let endpoint = match of.label.as_str() {
            "" => Endpoint::Posted("labels"),
            // A name of anything else is no part of a path.
            label if label_set::is_name(label.as_bytes()) => {
                Endpoint::Got(format!("label/{label}/values"))
            }
            label => return Err(format!("{label:?} is not a label's name")),
        };
        let form = form_of(&of.find, &[])?;
        let body = self.ask(&endpoint, &form).await?;
        let answer = api::read::<Vec<String>>(&body)?;
        self.missing.extend(answer.warnings);
        let is_kept = |text: &String| match of.label.as_str() {
            "" => label_set::is_name(text.as_bytes()) && !drop_labels.contains(text),
            _ => text.len() <= label_set::TEXT_MAX,
        };
        let texts: BTreeSet<String> = answer.data.into_iter().filter(is_kept).collect();
        let texts: Vec<String> = texts.into_iter().collect();
        Ok(frames(&texts, Answer::Labels))
    }

    async fn families(&mut self, metric: &str) -> Result<Vec<Answer>, String> {
        let form = match metric {
            "" => String::new(),
            metric => form(&[("metric", metric)]),
        };
        let body = self.ask(&Endpoint::Got("metadata".into()), &form).await?;
        let answer = api::read::<BTreeMap<String, Vec<Description>>>(&body)?;
        let families = answer
            .data
            .into_iter()
            .filter_map(|(metric, descriptions)| {
                let of = descriptions.into_iter().next()?;
                let texts = [&metric, &of.kind, &of.unit, &of.help];
                let is_short = texts
                    .into_iter()
                    .all(|text| text.len() <= label_set::TEXT_MAX);
                is_short.then_some(MetricFamily {
                    metric,
                    kind: of.kind,
                    unit: of.unit,
                    help: of.help,
                })
            });
        Ok(vec![Answer::Families(families.take(FOUND_MAX).collect())])
    }

    async fn samples(&mut self, of: &SamplesOf) -> Result<Vec<Answer>, String> {
        let mut left = Allowance {
            samples: of.samples_max.min(SAMPLES_MAX),
            requests: REQUESTS_MAX,
        };
        let mut frames = Vec::new();
        for ids in of.ids.chunks(TOGETHER) {
            let mut samples = self
                .samples_of(ids, (of.from_ms, of.thru_ms), &mut left)
                .await?;
            for id in ids {
                // Where several series are one now, the first sample of a time counts.
                let mut samples = samples.remove(id).unwrap_or_default();
                samples.sort_by_key(|sample| sample.t_ms);
                samples.dedup_by_key(|sample| sample.t_ms);
                let pieces = samples.chunks(FRAME_SAMPLES).map(|part| SamplesPiece {
                    id: *id,
                    resolution_s: 0,
                    samples: part.iter().map(|of| (of.t_ms, of.v)).collect(),
                });
                frames.extend(pieces.map(|piece| Answer::Samples(piece, true)));
            }
        }
        frames.push(Answer::Samples(SamplesPiece::default(), false));
        Ok(frames)
    }

    /// Samples of some series. A range whose answer is too long is asked for in halves.
    async fn samples_of(
        &mut self,
        ids: &[u64],
        range_ms: (i64, i64),
        left: &mut Allowance,
    ) -> Result<BTreeMap<u64, Vec<Sample>>, String> {
        let selector = self.selector(ids)?;
        let mut samples: BTreeMap<u64, Vec<Sample>> =
            ids.iter().map(|id| (*id, Vec::new())).collect();
        let mut ranges = vec![within_times(range_ms)];
        while let Some((from_ms, thru_ms)) = ranges.pop() {
            if thru_ms < from_ms {
                continue;
            }
            let requests = left.requests.checked_sub(1);
            left.requests =
                requests.ok_or("the question selects too many of its samples; narrow it")?;
            // The begin of a range is not in it.
            let length_ms = (thru_ms - from_ms).saturating_add(1);
            let query = format!("{selector}[{length_ms}ms]");
            let form = form(&[("query", &query), ("time", &seconds(thru_ms))]);
            match self.client.ask(&Endpoint::Posted("query"), &form).await {
                Ok(body) => self.take_samples(&body, (from_ms, thru_ms), &mut samples, left)?,
                Err(Failure::TooLong) if length_ms > HALVED_MS => {
                    let middle_ms = from_ms + length_ms / 2;
                    ranges.push((middle_ms, thru_ms));
                    ranges.push((from_ms, middle_ms - 1));
                }
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Ok(samples)
    }

    fn selector(&self, ids: &[u64]) -> Result<String, String> {
        let known = self.shared.known();
        let labels: Option<Vec<&Labels>> = ids.iter().map(|id| known.labels(*id)).collect();
        let labels = labels.ok_or("its series were found too long ago; ask again")?;
        Ok(selector::of_series(&labels))
    }

    /// Takes samples of series that were asked for, of this range, from an answer.
    pub(crate) fn take_samples(
        &mut self,
        body: &[u8],
        (from_ms, thru_ms): (i64, i64),
        samples: &mut BTreeMap<u64, Vec<Sample>>,
        left: &mut Allowance,
    ) -> Result<(), String> {
        let answer = api::read::<Matrix>(body)?;
        self.missing.extend(answer.warnings);
        for track in &answer.data.result {
            let labels = self.shared.labels(&track.metric);
            // The selector picks some series more.
            let Some(of) = labels.and_then(|labels| samples.get_mut(&KnownSeries::id(&labels)))
            else {
                continue;
            };
            let before = of.len();
            of.extend(
                track
                    .samples()
                    .filter(|one| (from_ms..=thru_ms).contains(&one.t_ms)),
            );
            let more = u64::try_from(of.len() - before).unwrap_or(u64::MAX);
            let rest = left.samples.checked_sub(more);
            left.samples = rest.ok_or("the question selects too many of its samples; narrow it")?;
        }
        Ok(())
    }
}

/// The rest of what one question for samples may cost.
pub(crate) struct Allowance {
    /// Samples.
    pub(crate) samples: u64,
    /// Requests of HTTP.
    pub(crate) requests: u64,
}

/// Parameters as the form of a POST, or the query of a URL.
fn form(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// The form of a question for series, with more parameters.
fn form_of(find: &Find, more: &[(&str, &str)]) -> Result<String, String> {
    let (from_ms, thru_ms) = within_times((find.from_ms, find.thru_ms));
    let selector = selector::of_matchers(&find.matchers)?;
    let (start, end) = (seconds(from_ms), seconds(thru_ms.max(from_ms)));
    let own = [
        ("match[]", selector.as_str()),
        ("start", &start),
        ("end", &end),
    ];
    Ok(form(&[&own[..], more].concat()))
}

/// A range without times that engines refuse.
fn within_times((from_ms, thru_ms): (i64, i64)) -> (i64, i64) {
    let last_ms = RealClock
        .now()
        .real_ns
        .div_euclid(1_000_000)
        .saturating_add(AHEAD_MS);
    (from_ms.clamp(0, last_ms), thru_ms.clamp(0, last_ms))
}

/// Milliseconds as seconds; they are not negative.
fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A list as frames, of which the last one says that none follows.
fn frames<T: Clone>(items: &[T], frame: impl Fn(Vec<T>, bool) -> Answer) -> Vec<Answer> {
    if items.is_empty() {
        return vec![frame(Vec::new(), false)];
    }
    let parts = items.len().div_ceil(FRAME_SERIES);
    let parts = items
        .chunks(FRAME_SERIES)
        .zip(1..=parts)
        .map(|(part, number)| (part, number < parts));
    parts
        .map(|(part, more)| frame(part.to_vec(), more))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_frames() {
        let texts: Vec<String> = (0..FRAME_SERIES + 1).map(|n| n.to_string()).collect();
        let made = frames(&texts, Answer::Labels);
        let shape = made.iter().map(|frame| match frame {
            Answer::Labels(part, more) => (part.len(), *more),
            other => panic!("{other:?}"),
        });
        assert_eq!(
            shape.collect::<Vec<_>>(),
            [(FRAME_SERIES, true), (1, false)]
        );
        assert_eq!(
            frames(&[], Answer::Labels),
            [Answer::Labels(Vec::new(), false)]
        );
    }

    #[test]
    fn times_are_those_that_engines_take() {
        let (from_ms, thru_ms) = within_times((i64::MIN, i64::MAX));
        assert_eq!(seconds(from_ms), "0.000");
        assert!(thru_ms > 1_700_000_000_000);
        assert_eq!(seconds(1_435_781_451_078), "1435781451.078");
    }
}
