//! Which series a recording has.

use std::collections::{BTreeSet, HashMap};

use kymo_base::context::Context;
use kymo_base::label_set;
use kymo_kernel::exposition::{ExposedInstance, MetricGroup, SamplePart};
use kymo_kernel::subsystem::exposed::Kind as MetricKind;
use kymo_kernel::subsystem::{self, Subsystem};
use kymo_series::{Budget, Kind, Labels, Matcher, Metadata, ReadError, SeriesId, names};

use super::pass::{Pass, PassSink, WantedMetrics};
use crate::metric_labels::labels_of;
use crate::sheet::{Line, Pick, id};

/// Where the samples of a series come from.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum SampleOrigin {
    /// A sample of an exposed metric.
    Metric(MetricOrigin),
    /// A field, by its id.
    Field(String),
}

/// A sample of an exposed metric.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MetricOrigin {
    /// Index of the subsystem.
    pub(super) subsystem: usize,
    /// Index of the group among the subsystem's.
    pub(super) group: usize,
    /// Name of the instance.
    pub(super) instance: Vec<u8>,
    /// Index of the family in the group.
    pub(super) family: usize,
    /// The sample among the family's.
    pub(super) part: SamplePart,
}

/// Series that a reader has found; their ids are their places.
#[derive(Default)]
pub(super) struct RecordedSeries {
    series: Vec<(Labels, SampleOrigin)>,
    ids: HashMap<Labels, usize>,
}

impl RecordedSeries {
    /// The series of an id.
    pub(super) fn get(&self, id: SeriesId) -> Option<&(Labels, SampleOrigin)> {
        self.series.get(id.place())
    }

    /// The id of a series. `None`: another origin has these labels already, and a series can be there but once.
    fn add(&mut self, labels: Labels, origin: SampleOrigin) -> Option<SeriesId> {
        let place = match self.ids.get(&labels) {
            Some(&place) if self.series[place].1 == origin => place,
            Some(_) => return None,
            None => {
                self.ids.insert(labels.clone(), self.series.len());
                self.series.push((labels, origin));
                self.series.len() - 1
            }
        };
        Some(SeriesId::at(place))
    }
}

/// Matchers, with all that they say of a series before any is read.
#[derive(Clone, Copy)]
pub(super) struct MatcherSet<'a>(pub(super) &'a [Matcher]);

impl MatcherSet<'_> {
    /// True if a series of this metric may be picked.
    fn may_pick(&self, metric: &str) -> bool {
        self.0.iter().all(|matcher| match matcher.label() {
            names::METRIC => matcher.matches(metric.as_bytes()),
            "job" => matcher.matches(names::job_of_machine(metric)),
            _ => true,
        })
    }

    fn picks(&self, labels: &Labels) -> bool {
        let value = |matcher: &Matcher| label_set::value(labels.text(), matcher.label());
        let mut matchers = self.0.iter();
        matchers.all(|matcher| matcher.matches(&value(matcher)))
    }

    /// The pass that finds all series that may be picked.
    pub(super) fn pass(&self) -> Pass {
        let subsystems = subsystem::ALL.iter().enumerate();
        let subsystems = subsystems.filter(|(_, subsystem)| is_read(subsystem));
        let metrics = subsystems.filter_map(|(index, subsystem)| self.metrics(index, subsystem));
        let picks = Pick::all().into_iter();
        let picks = picks.filter(|pick| self.may_pick(&names::field_metric(&field(pick))));
        Pass::new(metrics.collect::<Vec<_>>(), picks.collect())
    }

    /// The metrics of a subsystem that may be picked.
    fn metrics(&self, index: usize, subsystem: &Subsystem) -> Option<WantedMetrics> {
        let exposed = &subsystem.exposed;
        let machine = exposed.machine.iter().enumerate();
        let machine = machine.filter(|(_, family)| self.may_pick(family.name));
        let machine: Vec<usize> = machine.map(|(place, _)| place).collect();
        let mut of_instances = exposed.each.iter().flat_map(|each| each.families);
        let instances = of_instances.any(|family| self.may_pick(family.name));
        (instances || !machine.is_empty()).then_some(WantedMetrics {
            subsystem: index,
            machine,
            instances,
        })
    }
}

/// Processes are too many, and tell of people: they are no series.
fn is_read(subsystem: &Subsystem) -> bool {
    !subsystem.is_of_processes()
}

fn field(pick: &Pick) -> String {
    id(pick.subsystem, pick.column, None)
}

/// Finds the series that a question picks.
pub(super) struct Discovery<'a> {
    matcher_set: MatcherSet<'a>,
    budget: &'a mut Budget,
    found: &'a mut RecordedSeries,
    picked: BTreeSet<SeriesId>,
    /// Series that were found since the last call of [`Discovery::take_fresh`].
    fresh: Vec<SeriesId>,
    known: Vec<KnownGroup>,
    lines: Vec<bool>,
    error: Option<ReadError>,
}

/// A group of metrics, as its last reading had it.
#[derive(Default)]
struct KnownGroup {
    /// Indices of the subsystem and of the group among the subsystem's.
    at: (usize, usize),
    /// Places of the families that may be picked.
    families: Vec<usize>,
    /// The name of each instance, and the number of its samples.
    instances: Vec<(Vec<u8>, usize)>,
}

impl<'a> Discovery<'a> {
    pub(super) fn new(
        matcher_set: MatcherSet<'a>,
        budget: &'a mut Budget,
        found: &'a mut RecordedSeries,
    ) -> Discovery<'a> {
        Discovery {
            matcher_set,
            budget,
            found,
            picked: BTreeSet::new(),
            fresh: Vec::new(),
            known: Vec::new(),
            lines: Vec::new(),
            error: None,
        }
    }

    /// The series that were found, or why not all of them.
    pub(super) fn end(self) -> Result<Vec<SeriesId>, ReadError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.picked.into_iter().collect()),
        }
    }

    /// Calls `each` with the series that were found since the last call.
    pub(super) fn take_fresh(&mut self, mut each: impl FnMut(SeriesId, &SampleOrigin)) {
        for id in self.fresh.drain(..) {
            if let Some((_, origin)) = self.found.get(id) {
                each(id, origin);
            }
        }
    }

    fn add(&mut self, labels: Labels, origin: SampleOrigin) {
        let id = self.found.add(labels, origin);
        let Some(id) = id.filter(|id| !self.picked.contains(id)) else {
            return;
        };
        match self.budget.take_series(1) {
            Ok(()) => {
                self.picked.insert(id);
                self.fresh.push(id);
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn instance(
        &mut self,
        at: (usize, usize),
        group: &MetricGroup,
        families: &[usize],
        of: &ExposedInstance,
        context: &Context,
    ) {
        for &number in families {
            let Some(family) = group.families.get(number) else {
                continue;
            };
            let mut parts = Vec::new();
            of.samples(family, group.fields, (context, 0.0), &mut |part, _| {
                parts.push(part)
            });
            for part in parts {
                let labels = labels_of(host(context), group, of, family, part);
                let Some(labels) = labels.filter(|labels| self.matcher_set.picks(labels)) else {
                    continue;
                };
                let origin = MetricOrigin {
                    subsystem: at.0,
                    group: at.1,
                    instance: of.row.name.clone(),
                    family: number,
                    part,
                };
                self.add(labels, SampleOrigin::Metric(origin));
            }
        }
    }

    /// The place of a group among those that are known.
    fn place(&mut self, at: (usize, usize), group: &MetricGroup) -> usize {
        let place = self.known.iter().position(|known| known.at == at);
        place.unwrap_or_else(|| {
            self.known.push(self.group_of(at, group));
            self.known.len() - 1
        })
    }

    fn group_of(&self, at: (usize, usize), group: &MetricGroup) -> KnownGroup {
        let families = group.families.iter().enumerate();
        let families = families.filter(|(_, family)| self.matcher_set.may_pick(family.name));
        KnownGroup {
            at,
            families: families.map(|(number, _)| number).collect(),
            instances: Vec::new(),
        }
    }
}

/// The number of samples that an instance has in a reading.
fn count(
    group: &MetricGroup,
    families: &[usize],
    of: &ExposedInstance,
    context: &Context,
) -> usize {
    let mut count = 0;
    for family in families
        .iter()
        .filter_map(|&number| group.families.get(number))
    {
        of.samples(family, group.fields, (context, 0.0), &mut |_, _| count += 1);
    }
    count
}

impl PassSink for Discovery<'_> {
    fn metrics(
        &mut self,
        _t_ms: i64,
        subsystem: usize,
        groups: &[MetricGroup],
        context: &Context,
    ) -> bool {
        for (number, group) in groups.iter().enumerate() {
            let at = (subsystem, number);
            let place = self.place(at, group);
            let mut known = std::mem::take(&mut self.known[place]);
            if known.families.is_empty() {
                self.known[place] = known;
                continue;
            }
            known.instances.truncate(group.instances.len());
            for (number, instance) in group.instances.iter().enumerate() {
                let count = count(group, &known.families, instance, context);
                let name = &instance.row.name;
                let last = known.instances.get_mut(number);
                let is_named = last.as_ref().is_some_and(|(known, _)| known == name);
                if !last
                    .as_ref()
                    .is_some_and(|(_, last)| is_named && *last >= count)
                {
                    self.instance(at, group, &known.families, instance, context);
                }
                match last {
                    Some((_, last)) if is_named => *last = count,
                    Some(last) => *last = (name.clone(), count),
                    None => known.instances.push((name.clone(), count)),
                }
            }
            self.known[place] = known;
        }
        self.error.is_none()
    }

    fn field(
        &mut self,
        _t_ms: i64,
        (number, line): (usize, &Line),
        _value: f64,
        context: &Context,
    ) -> bool {
        if self.lines.len() <= number {
            self.lines.resize(number + 1, false);
        }
        if std::mem::replace(&mut self.lines[number], true) {
            return true;
        }
        let (field, instance) = match line.id.split_once(':') {
            Some((field, instance)) => (field, instance),
            None => (&*line.id, ""),
        };
        let labels = names::field(host(context), field, instance.as_bytes());
        if let Some(labels) = labels.ok().filter(|labels| self.matcher_set.picks(labels)) {
            self.add(labels, SampleOrigin::Field(line.id.clone()));
        }
        self.error.is_none()
    }
}

/// Name of the machine of a recording.
fn host(context: &Context) -> &[u8] {
    context.get("host").unwrap_or_default().as_bytes()
}

/// The meaning of all metrics and fields.
pub(super) fn metadata() -> Vec<Metadata> {
    let mut all = Vec::new();
    for subsystem in subsystem::ALL.iter().filter(|subsystem| is_read(subsystem)) {
        let machine = subsystem.exposed.machine.iter();
        let machine = machine.map(|family| (family, subsystem.globals));
        let each = subsystem.exposed.each.iter().flat_map(|each| each.families);
        let each = each.map(|family| (family, subsystem.fields));
        all.extend(machine.chain(each).map(|(family, fields)| Metadata {
            metric: family.name.into(),
            kind: match family.kind {
                MetricKind::Counter => Kind::Counter,
                MetricKind::Gauge => Kind::Gauge,
                MetricKind::Untyped => Kind::Untyped,
            },
            help: family.meaning(fields).into(),
            ..Metadata::of_kind(String::new(), Kind::Untyped)
        }));
    }
    all.extend(Pick::all().iter().map(|pick| Metadata {
        help: pick.column.help.into(),
        ..Metadata::of_kind(names::field_metric(&field(pick)), Kind::Gauge)
    }));
    all.sort_by(|a, b| a.metric.cmp(&b.metric));
    all.dedup_by(|a, b| a.metric == b.metric);
    all
}
