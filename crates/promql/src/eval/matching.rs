//! Operators of two vectors: matching of series, and the results.

use std::collections::HashMap;

use crate::ast::VectorMatching;
use crate::eval::column::{Column, is_missing, is_there};
use crate::eval::error::EvalError;
use crate::eval::grid::Grid;
use crate::eval::label_set::{LabelSet, is_of_metric};
use crate::eval::merge::merged;
use crate::eval::meter::Meter;
use crate::eval::operate::{Comparing, of_series};
use crate::operators::{BinaryOp, Cardinality};

/// The labels by which a series is compared with those of the other side.
pub(crate) fn signature(labels: &LabelSet, matching: &VectorMatching) -> LabelSet {
    let is_listed = |name: &str| matching.labels.iter().any(|listed| listed == name);
    match matching.is_on {
        true => labels.filtered(is_listed),
        false => labels.filtered(|name| !is_of_metric(name) && !is_listed(name)),
    }
}

/// Arithmetic and comparisons of two vectors.
pub(crate) struct Joining<'a> {
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) grid: Grid,
    pub(crate) op: BinaryOp,
    pub(crate) comparing: Comparing,
    pub(crate) matching: &'a VectorMatching,
}

/// Series of one signature.
#[derive(Default)]
struct Meeting {
    /// Places on the side that may have many.
    many: Vec<usize>,
    /// Places on the side that has one a step.
    one: Vec<usize>,
}

/// Two series that meet, and the labels of their result.
struct Pair<'a> {
    many: &'a Column,
    one: &'a Column,
    labels: LabelSet,
}

impl Joining<'_> {
    /// The result of two vectors.
    pub(crate) fn join(
        &self,
        left: Vec<Column>,
        right: Vec<Column>,
    ) -> Result<Vec<Column>, EvalError> {
        let (many, one) = match self.is_swapped() {
            true => (right, left),
            false => (left, right),
        };
        let meetings = self.meetings(&many, &one);
        for (signature, meeting) in meetings.iter().filter(|(_, of)| of.one.len() > 1) {
            self.check_one(signature, meeting, &many, &one)?;
        }
        let mut results = Vec::new();
        for (_, meeting) in &meetings {
            self.meet(meeting, &many, &one, &mut results)?;
        }
        self.meter.drop_all(many);
        self.meter.drop_all(one);
        merged(self.meter, results)
    }

    /// True if the left side is the one that has a series a step.
    fn is_swapped(&self) -> bool {
        self.matching.cardinality == Cardinality::OneToMany
    }

    /// Series that meet, in the order of the side of the many.
    fn meetings(&self, many: &[Column], one: &[Column]) -> Vec<(LabelSet, Meeting)> {
        let mut places: HashMap<LabelSet, usize> = HashMap::new();
        let mut meetings: Vec<(LabelSet, Meeting)> = Vec::new();
        let mut put = |column: &Column, add: &dyn Fn(&mut Meeting)| {
            let signature = signature(&column.labels, self.matching);
            let place = *places.entry(signature.clone()).or_insert(meetings.len());
            if place == meetings.len() {
                meetings.push((signature, Meeting::default()));
            }
            if let Some((_, meeting)) = meetings.get_mut(place) {
                add(meeting);
            }
        };
        for (at, column) in many.iter().enumerate() {
            put(column, &|meeting| meeting.many.push(at));
        }
        for (at, column) in one.iter().enumerate() {
            put(column, &|meeting| meeting.one.push(at));
        }
        meetings
    }

    /// Two series of one signature at one step are an error, if there is anything on the other side at that step.
    fn check_one(
        &self,
        signature: &LabelSet,
        meeting: &Meeting,
        many: &[Column],
        one: &[Column],
    ) -> Result<(), EvalError> {
        let mut first: Vec<Option<usize>> = vec![None; self.grid.count];
        for &at in &meeting.one {
            self.meter.worked(self.grid.count)?;
            let Some(column) = one.get(at) else { continue };
            let there = |column: &Column, step: usize| {
                column.values.get(step).copied().is_some_and(is_there)
            };
            for (step, (first, &value)) in first.iter_mut().zip(&column.values).enumerate() {
                match *first {
                    _ if is_missing(value) => {}
                    None => *first = Some(at),
                    Some(before) => {
                        if many.iter().any(|column| there(column, step)) {
                            return Err(self.twice(signature, one.get(before), column));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn twice(&self, signature: &LabelSet, before: Option<&Column>, after: &Column) -> EvalError {
        let side = if self.is_swapped() { "left" } else { "right" };
        let mut texts = [before.unwrap_or(after), after].map(|column| column.labels.to_string());
        texts.sort();
        EvalError::Execution(format!(
            "found duplicate series for the match group {signature} on the {side} hand-side of the operation: \
             [{}];many-to-many matching not allowed: matching labels must be unique on one side",
            texts.join(", ")
        ))
    }

    /// The results of the series of one signature.
    fn meet(
        &self,
        meeting: &Meeting,
        many: &[Column],
        one: &[Column],
        results: &mut Vec<Column>,
    ) -> Result<(), EvalError> {
        let mut pairs = Vec::with_capacity(meeting.many.len());
        for many in meeting.many.iter().filter_map(|&at| many.get(at)) {
            for one in meeting.one.iter().filter_map(|&at| one.get(at)) {
                let labels = self.result_labels(&many.labels, &one.labels)?;
                pairs.push(Pair { many, one, labels });
            }
        }
        if meeting.many.len() > 1 {
            self.check_pairs(&pairs)?;
        }
        for Pair { many, one, labels } in pairs {
            let mut values = self.meter.values(self.grid)?;
            self.operate(&many.values, &one.values, &mut values);
            match values.iter().copied().any(is_there) {
                true => results.push(Column { labels, values }),
                false => self.meter.release(values.len()),
            }
        }
        Ok(())
    }

    /// Two pairs that give one result may not meet at one step, even if a comparison leaves their values out.
    fn check_pairs(&self, pairs: &[Pair]) -> Result<(), EvalError> {
        let mut alike: HashMap<Option<&LabelSet>, Vec<&Pair>> = HashMap::new();
        for pair in pairs {
            let result = match self.matching.cardinality {
                Cardinality::OneToOne => None,
                _ => Some(&pair.labels),
            };
            alike.entry(result).or_default().push(pair);
        }
        for pairs in alike.values().filter(|pairs| pairs.len() > 1) {
            let mut taken = vec![false; self.grid.count];
            for pair in pairs {
                self.meter.worked(self.grid.count)?;
                self.take(&mut taken, pair)?;
            }
        }
        Ok(())
    }

    /// Marks the steps at which two series meet.
    fn take(&self, taken: &mut [bool], pair: &Pair) -> Result<(), EvalError> {
        let pairs = pair.many.values.iter().zip(&pair.one.values);
        for (taken, (&many, &one)) in taken.iter_mut().zip(pairs) {
            if is_missing(many) || is_missing(one) {
                continue;
            }
            if *taken {
                return Err(EvalError::Execution(
                    match self.matching.cardinality {
                        Cardinality::OneToOne => {
                            "multiple matches for labels: many-to-one matching must be explicit \
                             (group_left/group_right)"
                        }
                        _ => "multiple matches for labels: grouping labels must ensure unique matches",
                    }
                    .into(),
                ));
            }
            *taken = true;
        }
        Ok(())
    }

    fn operate(&self, many: &[f64], one: &[f64], values: &mut [f64]) {
        let is_swapped = self.is_swapped();
        for (value, (&many, &one)) in values.iter_mut().zip(many.iter().zip(one)) {
            if is_missing(many) || is_missing(one) {
                continue;
            }
            let (left, right) = if is_swapped { (one, many) } else { (many, one) };
            *value = of_series(self.op, self.comparing, left, right, left);
        }
    }

    fn result_labels(&self, many: &LabelSet, one: &LabelSet) -> Result<LabelSet, EvalError> {
        let drops = self.comparing.drops_metric(self.op);
        let is_kept = |name: &str| !(drops && is_of_metric(name));
        let listed = |name: &str| self.matching.labels.iter().any(|listed| listed == name);
        let mut labels = match (self.matching.cardinality, self.matching.is_on) {
            (Cardinality::OneToOne, true) => many.filtered(|name| is_kept(name) && listed(name)),
            (Cardinality::OneToOne, false) => many.filtered(|name| is_kept(name) && !listed(name)),
            _ => many.filtered(is_kept),
        };
        for name in &self.matching.include {
            labels = labels.with(name, one.get(name))?;
        }
        Ok(labels)
    }
}
