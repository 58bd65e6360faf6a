//! Values of a series that is not in the index. If the store has the series, the value counts at once and costs no
//! budget. A new name of a sender that signs, of a trusted network or of a client of the unix socket begins at once; any other new name begins when
//! its sender repeats it.

use kymo_base::name::DisplayName;
use kymo_store::SeriesName;
use kymo_wire::collectd::{Values, put_update};
use kymo_wire::keeper::Count;

use super::budgets::{Payer, Trusted};
use super::hosts::{SECOND_NS, seconds};
use super::intake::{Intake, Registry, Round, Source, whole_seconds};
use super::probation::{First, Id, Newcomer, Trial};
use crate::name_space::Input;
use crate::sender_group::SenderGroup;

/// A series new in the index, and the first value of its name if that waited.
pub(super) type Begins = (u32, Option<First>);

impl Intake {
    /// Decides on values of a series that is not in the index. `None`: they wait.
    pub(super) fn arrive(
        &mut self,
        round: &mut Round,
        values: &Values,
        source: Source,
        user: Option<&[u8]>,
    ) -> Result<Option<Begins>, Count> {
        let mut path = std::mem::take(&mut round.registry.newcomers.path);
        path.clear();
        let arrived = match values.identifier.put_rrd_path(&mut path) {
            Ok(()) => self.arrive_at(round, &path, values, (source, user)),
            Err(_) => Err(Count::Refused),
        };
        round.registry.newcomers.path = path;
        arrived
    }

    fn arrive_at(
        &mut self,
        round: &mut Round,
        path: &[u8],
        values: &Values,
        (source, user): (Source, Option<&[u8]>),
    ) -> Result<Option<Begins>, Count> {
        if !Input::Collectd.may_write(SeriesName::File(path)) {
            let shown = DisplayName(path);
            self.accounts.last_refusal = Some(format!("only the poller may write {shown}"));
            return Err(Count::Held);
        }
        let step_s = round.store.step(path);
        let payer = source.payer(user);
        let mut first = None;
        match payer {
            Payer::User(_) | Payer::Trusted(_) if step_s.is_some() => {}
            Payer::User(_) | Payer::Trusted(_) => self.pay(round, path, payer)?,
            Payer::Group(group) => {
                let interval = round.registry.interval_of(values);
                let interval_s = step_s.unwrap_or_else(|| whole_seconds(interval));
                if round.is_ahead_by(values.time, interval_s) {
                    return Err(Count::Future);
                }
                if step_s.is_none() {
                    let tried = self.try_name(round, path, values, (source.sender, group));
                    let Some(id) = tried? else { return Ok(None) };
                    first = round.registry.newcomers.probation.release(id);
                }
            }
        }
        let codes = values.values.codes();
        if let Some(other) = first.take_if(|first| first.codes() != codes) {
            self.accounts
                .count(source.sender, Count::Mismatched, other.count());
        }
        let Registry { index, hosts, .. } = &mut *round.registry;
        let added = index.add(values.identifier, codes, (hosts, round.mono_ns));
        let series = added.map_err(|_| Count::Refused)?;
        Ok(Some((series, first)))
    }

    /// Tries a name of an untrusted sender: the name begins if its sender repeats it and the group's budget pays for it.
    /// `None`: it waits.
    fn try_name(
        &mut self,
        round: &mut Round,
        path: &[u8],
        values: &Values,
        (sender, group): (u16, SenderGroup),
    ) -> Result<Option<Id>, Count> {
        let from = self.texts.len();
        put_update(&mut self.texts, values.time, values.values.iter());
        let newcomer = Newcomer {
            path,
            group,
            account: (self.at, sender),
            time: values.time,
            interval: values.interval,
            codes: values.values.codes(),
            text: &self.texts[from..],
        };
        let probation = &mut round.registry.newcomers.probation;
        let trial = probation.take(&newcomer, round.mono_ns / SECOND_NS);
        self.texts.truncate(from);
        let id = match trial {
            Trial::Begins => return Ok(None),
            Trial::Late => return Err(Count::Late),
            Trial::Repeated(id) => id,
        };
        // A sender cannot make up a file: a series with a file that the store does not know yet costs no budget.
        if round.store.touch(path).is_err() {
            self.pay(round, path, Payer::Group(group))?;
        }
        Ok(Some(id))
    }

    /// Takes a new series from a budget, or names the budget that is used up.
    fn pay(&mut self, round: &mut Round, path: &[u8], payer: Payer) -> Result<(), Count> {
        let budgets = &mut round.registry.newcomers.budgets;
        if budgets.takes(payer, seconds(round.mono_ns)) {
            return Ok(());
        }
        let who = match payer {
            Payer::User(user) => format!("user {}", DisplayName(user)),
            Payer::Trusted(Trusted::Network(_)) => "its network".to_string(),
            Payer::Trusted(Trusted::User(uid)) => format!("the user with number {uid}"),
            Payer::Group(group) => group.to_string(),
        };
        self.accounts.last_refusal = Some(format!(
            "cannot make {}: {who} has brought as many new series as it may; it may bring more later, and at once if it \
             signs or is of a network in [collectd] trusted",
            DisplayName(path)
        ));
        Err(Count::Refused)
    }
}
