//! Events of devices for the keeper. They wait while it is away.

use super::Keeper;
use crate::sink::Report;
use kymo_wire::keeper::{Answer, Event, KeeperRequest, NOTIFIED_MAX};
use std::collections::VecDeque;
use std::io;

/// Limit of waiting events, which is the number of events that the keeper has in memory.
const WAITING_MAX: usize = 4096;

/// Events that the keeper has not accepted yet, oldest first.
#[derive(Default)]
pub(super) struct Events(VecDeque<Event>);

impl Keeper {
    /// Sends events, those first that wait. Above the limit the oldest are dropped.
    pub(in crate::sink) fn write_events(&mut self, events: &[Event], report: &mut Report) {
        self.events.0.extend(events.iter().cloned());
        let too_many = self.events.0.len().saturating_sub(WAITING_MAX);
        self.events.0.drain(..too_many);
        while !self.events.0.is_empty() {
            if let Err(error) = self.send_events(report) {
                report
                    .troubles
                    .extend(self.connection.lock().failed(&error));
                return;
            }
        }
    }

    /// Sends the events of one request. Events that the keeper refuses are lost; the report
    /// has the reason.
    fn send_events(&mut self, report: &mut Report) -> io::Result<()> {
        let together = self.events.0.iter().take(NOTIFIED_MAX).cloned();
        let request = KeeperRequest::Notify(together.collect());
        // The keeper drops duplicates.
        let mut no_matter = false;
        let answers = self.connection.lock().ask(&request, 1, &mut no_matter)?;
        if let Some(Answer::Refused(why)) = answers.first() {
            let line = format!("cannot keep what happened to devices: {why}");
            report.troubles.push(line);
        }
        let count = self.events.0.len().min(NOTIFIED_MAX);
        self.events.0.drain(..count);
        Ok(())
    }
}
