//! Orders that change the behaviour of devices,
//! in words: `DEVICES:WORD[=VALUE][@SECONDS]`.

use std::ops::RangeInclusive;
use std::str::FromStr;

use kymo_wire::snmp::Oid;

use crate::behaviour::{Behaviour, Percent};
use crate::lie::{Broken, Lie};

/// Description of the words.
pub const USAGE: &str = "\
An order is DEVICES:WORD[=VALUE][@WHEN]. DEVICES: all, 3, 0-7 (from 0). WHEN: seconds after the
start, or usr2: at each SIGUSR2; without it at once. WORDs:
  dead, alive            hears nothing; hears again
  latency=MS             from request to reply
  varbind-us=N           slower by so much for each varbind
  loss=PERCENT           of requests
  duplicate=PERCENT      of replies come twice
  late=PERCENT/MS        of replies come so much later
  reply-max=BYTES        tooBig beyond (1472)
  varbinds-max=N         a request of more is not answered
  first-index=N          the first ifIndex (1)
  renumber=N             interfaces move by N places
  vanish=N               the last N interfaces are gone
  missing=OID            it has no such object
  restart                counters and sysUpTime begin at 0
  counters-reset         counters begin at 0
  counters-wrap=BYTES    counters are so far from 2^64 and 2^32
  uptime-wrap=SECONDS    sysUpTime is so far from 2^32
  lie=WORD               id, names, community, address, fewer, more, reversed, texts, endless, stuck
  broken=WORD            empty, half, cut, trailing, endless, indefinite, version3, trap, value,
                         no-digits, digits, noise
  honest                 neither of the two any more
";

/// Time of an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// Seconds after the start.
    After(f64),
    /// At each SIGUSR2.
    Signal,
}

/// An order to change the behaviour of devices.
#[derive(Clone, Debug)]
pub struct Order {
    /// Numbers from 0; numbers without a device are ignored.
    pub devices: RangeInclusive<u32>,
    /// Time of execution.
    pub when: When,
    deed: Deed,
}

#[derive(Clone, Debug, PartialEq)]
enum Deed {
    Dead(bool),
    Latency(u64),
    VarbindTime(u64),
    Loss(Percent),
    Duplicate(Percent),
    Late(Percent, u64),
    ReplyMax(usize),
    VarbindsMax(usize),
    FirstIndex(u32),
    Renumber(u32),
    Vanish(u32),
    Missing(Oid),
    Restart,
    CountersReset,
    CountersWrap(u64),
    UptimeWrap(f64),
    Lie(Option<Lie>),
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Order, String> {
        let cannot = |cause: &str| format!("cannot understand {text:?}: {cause}");
        let (devices, deed) = text.split_once(':').ok_or_else(|| cannot("no colon"))?;
        let (deed, when) = match deed.rsplit_once('@') {
            Some((deed, "usr2")) => (deed, When::Signal),
            Some((deed, seconds)) => {
                let seconds = number(seconds).map_err(|cause| cannot(&cause))?;
                (deed, When::After(seconds))
            }
            None => (deed, When::After(0.0)),
        };
        let (word, value) = deed.split_once('=').unwrap_or((deed, ""));
        Ok(Order {
            devices: range(devices).map_err(|cause| cannot(&cause))?,
            when,
            deed: deed_of(word, value).map_err(|cause| cannot(&cause))?,
        })
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}

fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    match text.split_once('-') {
        _ if text == "all" => Ok(0..=u32::MAX),
        Some((first, last)) => Ok(number(first)?..=number(last)?),
        None => number(text).map(|one| one..=one),
    }
}

fn micros(milliseconds: &str) -> Result<u64, String> {
    number::<f64>(milliseconds).map(|ms| (ms * 1000.0) as u64)
}

fn one_of<T: Copy>(all: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = all.iter().find(|(word, _)| *word == text);
    found
        .map(|&(_, one)| one)
        .ok_or_else(|| format!("{text:?} is none of its words"))
}

fn deed_of(word: &str, value: &str) -> Result<Deed, String> {
    Ok(match word {
        "dead" => Deed::Dead(true),
        "alive" => Deed::Dead(false),
        "latency" => Deed::Latency(micros(value)?),
        "varbind-us" => Deed::VarbindTime(number(value)?),
        "loss" => Deed::Loss(Percent(number(value)?)),
        "duplicate" => Deed::Duplicate(Percent(number(value)?)),
        "late" => {
            let (percent, ms) = value.split_once('/').ok_or("no / in it")?;
            Deed::Late(Percent(number(percent)?), micros(ms)?)
        }
        "reply-max" => Deed::ReplyMax(number(value)?),
        "varbinds-max" => Deed::VarbindsMax(number(value)?),
        "first-index" => Deed::FirstIndex(number(value)?),
        "renumber" => Deed::Renumber(number(value)?),
        "vanish" => Deed::Vanish(number(value)?),
        "missing" => Deed::Missing(Oid::parse(value).ok_or("not an OID")?),
        "restart" => Deed::Restart,
        "counters-reset" => Deed::CountersReset,
        "counters-wrap" => Deed::CountersWrap(number(value)?),
        "uptime-wrap" => Deed::UptimeWrap(number(value)?),
        "lie" => Deed::Lie(Some(one_of(&Lie::ALL, value)?)),
        "broken" => Deed::Lie(Some(Lie::Broken(one_of(&Broken::ALL, value)?))),
        "honest" => Deed::Lie(None),
        _ => return Err(format!("no word {word:?}")),
    })
}

impl Order {
    /// Changes a device's behaviour from this
    /// moment on, nanoseconds since 1970.
    pub fn carry_out(&self, behaviour: &mut Behaviour, now_ns: u64) {
        match &self.deed {
            Deed::Dead(dead) => behaviour.dead = *dead,
            Deed::Latency(us) => behaviour.latency_us = *us,
            Deed::VarbindTime(us) => behaviour.varbind_us = *us,
            Deed::Loss(percent) => behaviour.loss = *percent,
            Deed::Duplicate(percent) => behaviour.duplicated = *percent,
            Deed::Late(percent, us) => {
                behaviour.late = *percent;
                behaviour.late_us = *us;
            }
            Deed::ReplyMax(bytes) => behaviour.reply_bytes_max = *bytes,
            Deed::VarbindsMax(count) => behaviour.varbinds_max = *count,
            Deed::FirstIndex(index) => behaviour.first_index = *index,
            Deed::Renumber(places) => behaviour.renumber(*places, now_ns),
            Deed::Vanish(interfaces) => behaviour.vanish(*interfaces, now_ns),
            Deed::Missing(oid) => behaviour.missing.push(oid.clone()),
            Deed::Restart => behaviour.restart(now_ns),
            Deed::CountersReset => behaviour.count_from(0, now_ns),
            Deed::CountersWrap(bytes) => behaviour.count_from(bytes.wrapping_neg(), now_ns),
            Deed::UptimeWrap(seconds) => behaviour.wrap_uptime_in(*seconds, now_ns),
            Deed::Lie(lie) => behaviour.lie = *lie,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood() {
        for (text, devices, when, deed) in [
            ("all:dead", 0..=u32::MAX, When::After(0.0), Deed::Dead(true)),
            ("3:alive@2.5", 3..=3, When::After(2.5), Deed::Dead(false)),
            (
                "0-7:latency=2.5",
                0..=7,
                When::After(0.0),
                Deed::Latency(2500),
            ),
            ("1:renumber=3@usr2", 1..=1, When::Signal, Deed::Renumber(3)),
            (
                "1:late=5/3000",
                1..=1,
                When::After(0.0),
                Deed::Late(Percent(5.0), 3_000_000),
            ),
            (
                "1:lie=id",
                1..=1,
                When::After(0.0),
                Deed::Lie(Some(Lie::Id)),
            ),
            (
                "1:broken=half",
                1..=1,
                When::After(0.0),
                Deed::Lie(Some(Lie::Broken(Broken::Half))),
            ),
        ] {
            let order: Order = text.parse().unwrap();
            assert_eq!(
                (order.devices, order.when, order.deed),
                (devices, when, deed),
                "{text}"
            );
        }
        for text in [
            "dead",
            "x:dead",
            "1:die",
            "1:latency",
            "1:lie=x",
            "1:missing=x",
            "1:dead@x",
        ] {
            let error = text.parse::<Order>().unwrap_err();
            assert!(
                error.starts_with(&format!("cannot understand {text:?}: ")),
                "{error}"
            );
        }
    }

    /// Every word in the usage text is accepted.
    #[test]
    fn the_usage_is_true() {
        let example = |word: &str| match word {
            "late" => "5/5".to_owned(),
            "missing" => "1.3.6.1".to_owned(),
            "lie" => "id".to_owned(),
            "broken" => "half".to_owned(),
            _ => "1".to_owned(),
        };
        let mut words = 0;
        for line in USAGE
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        {
            for word in line.trim().split("  ").next().unwrap().split(", ") {
                let word = word.split('=').next().unwrap();
                deed_of(word, &example(word)).unwrap();
                words += 1;
            }
        }
        assert_eq!(words, 20);
    }
}
