//! Events that are neither shown nor saved yet. A sender may send many at once and few in the long run. When there is not room
//! for all, each group of senders has its share, so a flood fills neither the room of others nor the disk.

use std::collections::HashMap;
use std::sync::Arc;

use super::kept_event::Kept;
use crate::shares::last_shares;

/// Most events between two saves.
pub(super) const NEW_MAX: usize = 1024;
/// Most groups whose dropped events are counted apart.
const DROPPED_BY_MAX: usize = 256;
const SECOND_NS: u64 = 1_000_000_000;
/// Shortest time between two messages about dropped events.
const TELL_EVERY_NS: u64 = 60 * SECOND_NS;

/// A limit on events: burst, and rate a second in the long run.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventRate {
    pub(super) burst: u32,
    pub(super) per_second: u32,
}

/// Unused part of a rate at a time.
#[derive(Clone, Copy, Debug)]
struct Left {
    events: f64,
    at_ns: u64,
}

impl EventRate {
    fn full(self, now_ns: u64) -> Left {
        Left {
            events: f64::from(self.burst),
            at_ns: now_ns,
        }
    }

    fn refilled(self, left: Left, now_ns: u64) -> Left {
        let seconds = now_ns.saturating_sub(left.at_ns) as f64 / SECOND_NS as f64;
        let events = left.events + seconds * f64::from(self.per_second);
        Left {
            events: events.min(f64::from(self.burst)),
            at_ns: now_ns,
        }
    }

    fn is_full(self, left: Left) -> bool {
        left.events >= f64::from(self.burst)
    }
}

/// Waiting events, and the unused part of each group's rate.
pub(super) struct Waiting {
    of_group: EventRate,
    of_all: EventRate,
    new: Vec<Kept>,
    /// Unused parts of the groups that sent events lately.
    left: HashMap<Arc<[u8]>, Left>,
    left_of_all: Option<Left>,
    dropped: u64,
    dropped_by: HashMap<Arc<[u8]>, u64>,
    logged_ns: Option<u64>,
}

impl Waiting {
    pub(super) fn new(of_group: EventRate, of_all: EventRate) -> Waiting {
        Waiting {
            of_group,
            of_all,
            new: Vec::new(),
            left: HashMap::new(),
            left_of_all: None,
            dropped: 0,
            dropped_by: HashMap::new(),
            logged_ns: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty()
    }

    /// True if one of the events fits.
    pub(super) fn has(&self, is_one: &impl Fn(&Kept) -> bool) -> bool {
        self.new.iter().any(is_one)
    }

    /// Adds an event; returns the events that make room for it.
    pub(super) fn add(&mut self, event: Kept) -> Vec<Kept> {
        self.new.push(event);
        // Only at twice the limit, because a cut looks at all events.
        match self.new.len() < 2 * NEW_MAX {
            true => Vec::new(),
            false => self.cut(NEW_MAX, |_| usize::MAX),
        }
    }

    /// Takes out all: first the events to keep, then those that came too fast.
    pub(super) fn take(&mut self, now_ns: u64) -> (Vec<Kept>, Vec<Kept>) {
        let (of_group, of_all) = (self.of_group, self.of_all);
        self.left.retain(|_, left| {
            *left = of_group.refilled(*left, now_ns);
            !of_group.is_full(*left)
        });
        let all = self.left_of_all.unwrap_or_else(|| of_all.full(now_ns));
        let mut all = of_all.refilled(all, now_ns);
        let left = std::mem::take(&mut self.left);
        let most = |group: &Arc<[u8]>| {
            let left = left.get(group).copied();
            left.unwrap_or_else(|| of_group.full(now_ns)).events as usize
        };
        let dropped = self.cut(NEW_MAX.min(all.events as usize), most);
        self.left = left;
        for event in &self.new {
            let left = self.left.entry(event.from.clone());
            left.or_insert_with(|| of_group.full(now_ns)).events -= 1.0;
            all.events -= 1.0;
        }
        self.left_of_all = Some(all);
        (std::mem::take(&mut self.new), dropped)
    }

    fn cut(&mut self, room: usize, most: impl Fn(&Arc<[u8]>) -> usize) -> Vec<Kept> {
        let mut stay = last_shares(&self.new, room, Kept::who, most).into_iter();
        let dropped = self.new.extract_if(.., |_| stay.next() != Some(true));
        let dropped: Vec<Kept> = dropped.collect();
        for event in &dropped {
            self.dropped += 1;
            let is_known = self.dropped_by.contains_key(&event.from);
            if is_known || self.dropped_by.len() < DROPPED_BY_MAX {
                *self.dropped_by.entry(event.from.clone()).or_default() += 1;
            }
        }
        dropped
    }

    /// A line about events that came too fast: at once, then once a minute.
    pub(super) fn take_news(&mut self, now_ns: u64) -> Option<String> {
        let is_due = |last_ns: u64| now_ns.saturating_sub(last_ns) >= TELL_EVERY_NS;
        if self.dropped == 0 || !self.logged_ns.is_none_or(is_due) {
            return None;
        }
        self.logged_ns = Some(now_ns);
        let dropped = std::mem::take(&mut self.dropped);
        let by = std::mem::take(&mut self.dropped_by);
        let (who, most) = by
            .into_iter()
            .max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)))?;
        let who = kymo_base::name::DisplayName(&who);
        Some(format!(
            "cannot keep notifications: {dropped} came too fast, {most} of them from {who}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectd::kept_events::tests::event;

    const OF_GROUP: EventRate = EventRate {
        burst: 100,
        per_second: 10,
    };
    const OF_ALL: EventRate = EventRate {
        burst: 1000,
        per_second: 50,
    };

    fn of(from: &str, n: u32) -> Kept {
        Kept::new(from.as_bytes(), event(n))
    }

    /// Number of kept events of each group, with floods of these sizes before a save.
    fn kept(flood: &[(&str, u32)], second: u64, waiting: &mut Waiting) -> Vec<usize> {
        let mut dropped = 0;
        for (from, count) in flood {
            for n in 0..*count {
                dropped += waiting.add(of(from, n)).len();
            }
        }
        let (kept, more) = waiting.take(second * SECOND_NS);
        let sent: u32 = flood.iter().map(|(_, count)| count).sum();
        assert_eq!(kept.len() + dropped + more.len(), sent as usize);
        let of = |from: &[u8]| kept.iter().filter(|event| *event.from == *from).count();
        flood.iter().map(|(from, _)| of(from.as_bytes())).collect()
    }

    #[test]
    fn a_flood_has_its_share_and_no_more_than_its_rate() {
        let mut waiting = Waiting::new(OF_GROUP, OF_ALL);
        for (second, flood, want) in [
            (1, vec![("good", 20), ("evil", 30_000)], vec![20, 100]),
            (2, vec![("evil", 30_000), ("good", 20)], vec![10, 20]),
            (4, vec![("evil", 30_000)], vec![20]),
            (14, vec![("evil", 30_000)], vec![100]),
        ] {
            let found = kept(&flood, second, &mut waiting);
            assert_eq!(found, want, "at {second}");
        }
        assert!(waiting.left.len() == 1, "a silent group is forgotten");
    }

    /// Made-up addresses are many groups.
    #[test]
    fn all_groups_together_have_a_rate() {
        let mut waiting = Waiting::new(OF_GROUP, OF_ALL);
        let names: Vec<String> = (0..100).map(|n| format!("evil{n}")).collect();
        let mut sum = 0;
        for second in 0..20 {
            let mut flood: Vec<(&str, u32)> = names.iter().map(|name| (&name[..], 100)).collect();
            flood.push(("good", 1));
            let found = kept(&flood, second, &mut waiting);
            sum += found.iter().sum::<usize>();
            if second < 10 {
                assert!(waiting.left.len() <= 101);
            }
        }
        assert!(sum <= 1000 + 20 * 50, "{sum}");
    }

    #[test]
    fn dropped_events_are_logged_once_a_minute_with_their_sender() {
        let mut waiting = Waiting::new(OF_GROUP, OF_ALL);
        let mut lines = Vec::new();
        for second in 0..70 {
            kept(&[("evil", 200), ("odd", 101)], second, &mut waiting);
            lines.extend(waiting.take_news(second * SECOND_NS));
        }
        assert_eq!(lines.len(), 2, "{lines:?}");
        let want = "cannot keep notifications: 101 came too fast, 100 of them from evil";
        assert_eq!(lines[0], want);
    }
}
