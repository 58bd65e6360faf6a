//! `ThreshMailServer`, `ThreshMailSender`, `ThreshMailAddress`: a thread sends a mail for each event of a bound. Polling never
//! waits for the thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use kymo_base::printf::{put_fixed, put_general};
use kymo_wire::mrtg_cfg::{Config, Keyword, Target, decoded};
use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Message, SmtpTransport, Transport};

use super::{Action, Bound, Direction, Event, TargetBounds, Value};
use crate::description::plain_text;

/// Mails that wait for a slow server; further ones are lost.
const WAITING_MAX: usize = 1000;
/// Timeout for a connection, and for each answer of the server, as in MRTG.
const PATIENCE: Duration = Duration::from_secs(5);
/// Port of a server without one.
const SMTP_PORT: u16 = 25;

/// The sending thread's handle.
pub struct ThresholdMail {
    sender: Mailbox,
    /// Targets with addresses, by their place in the configuration.
    targets: BTreeMap<u32, MailedTarget>,
    mails: SyncSender<Message>,
    thread: JoinHandle<()>,
}

/// A target with the texts of its mails.
struct MailedTarget {
    name: String,
    /// By [`Bound::measure`], as are descriptions.
    addresses: [Vec<Mailbox>; 2],
    title: String,
    /// `PageTop`, without HTML.
    page_top: String,
    /// `ThreshDesc`, `HWThreshDesc`
    descriptions: [String; 2],
    bounds: TargetBounds,
}

impl ThresholdMail {
    /// Starts the thread if the configuration has a server and an address; `say` gets its errors. `host`: name of this machine.
    pub fn start(
        config: &Config,
        host: &str,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Option<ThresholdMail>> {
        let Some((server, sender)) = &config.globals().thresh_mail else {
            return Ok(None);
        };
        let Ok(sender) = sender.trim().parse() else {
            say(&format!("cannot mail as {sender}: it is no mail address"));
            return Ok(None);
        };
        let all = (0..).zip(config.targets());
        let targets = all.filter_map(|(at, target)| Some((at, MailedTarget::of(target, &say)?)));
        let targets: BTreeMap<u32, MailedTarget> = targets.collect();
        if targets.is_empty() {
            return Ok(None);
        }
        let servers = servers(server);
        let hello = ClientId::Domain(host.into());
        let (mails, queue) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("mail".into());
        let thread = thread.spawn(move || send_all(&servers, &hello, &queue, &say))?;
        Ok(Some(ThresholdMail {
            sender,
            targets,
            mails,
            thread,
        }))
    }

    /// Sends the mail about an event without waiting; `rate`: the compared rate. `Err`: the mail is lost, and why.
    pub fn send(&self, action: &Action, rate: f64) -> Result<(), String> {
        let target = self.targets.get(&action.target);
        let Some(target) =
            target.filter(|target| !target.addresses[action.bound.measure()].is_empty())
        else {
            return Ok(());
        };
        let cannot =
            |why: &dyn std::fmt::Display| format!("cannot mail about {}: {why}", target.name);
        let mail = target.mail(&self.sender, action, rate);
        let mail = mail.map_err(|error| cannot(&error))?;
        self.mails.try_send(mail).map_err(|error| match error {
            TrySendError::Full(_) => cannot(&"too many mails wait for the server"),
            TrySendError::Disconnected(_) => cannot(&"its thread has ended"),
        })
    }

    /// Waits until all mails are sent, or given up.
    pub fn finish(self) {
        drop(self.mails);
        // A thread that has panicked has said so.
        let _ended = self.thread.join();
    }
}

impl MailedTarget {
    /// `None`: the target has no address.
    fn of(target: Target<'_>, say: &dyn Fn(&str)) -> Option<MailedTarget> {
        let text = |keyword| Some(decoded(&target.value(keyword)?));
        let name = decoded(&target.name());
        let parse = |address: &str| {
            let parsed = address.trim().parse();
            if parsed.is_err() {
                say(&format!(
                    "cannot mail to {address:?} of {name}: it is no mail address"
                ));
            }
            parsed.ok()
        };
        let keywords = [Keyword::ThreshMailAddress, Keyword::HwThreshMailAddress];
        let addresses = keywords.map(|keyword| {
            let addresses = text(keyword).unwrap_or_default();
            let addresses = addresses.split(',').filter(|address| !address.is_empty());
            addresses.filter_map(parse).collect::<Vec<Mailbox>>()
        });
        let html = |keyword| target.value(keyword).unwrap_or_default();
        let has_any = addresses.iter().any(|of| !of.is_empty());
        has_any.then(|| MailedTarget {
            addresses,
            title: plain_text::line(&html(Keyword::Title)),
            page_top: plain_text::lines(&html(Keyword::PageTop)),
            descriptions: [Keyword::ThreshDesc, Keyword::HwThreshDesc]
                .map(|keyword| text(keyword).unwrap_or_default()),
            bounds: TargetBounds::of(target, b""),
            name,
        })
    }

    /// The mail: MRTG's subject, and a body with the same fields.
    fn mail(
        &self,
        sender: &Mailbox,
        action: &Action,
        rate: f64,
    ) -> Result<Message, lettre::error::Error> {
        let texts = self.texts(action, rate);
        let direction = match action.direction {
            Direction::In => "i",
            Direction::Out => "o",
        };
        let bound = match action.bound {
            Bound::Min | Bound::HwMin => "min",
            Bound::Max | Bound::HwMax => "max",
        };
        let measure = action.bound.measure();
        let kind = ["thresh", "hwthresh"][measure];
        let MailedTarget { name, title, .. } = self;
        let [word, state] = match action.event {
            Event::Broken => ["BROKEN", "broken"],
            Event::Mended => ["UN-BROKEN", "no longer broken"],
        };
        // MRTG writes the bound as it stands in the configuration once it is no longer broken.
        let compared = match action.event {
            Event::Broken => format!("( {} vs {} )", texts.limit, texts.value),
            Event::Mended => format!("( {} vs {})", texts.written, texts.number),
        };
        let mut body = format!(
            "{title}: the threshold is {state}.\n\n   Target: {name}\n     Type: {kind}\nDirection: {direction}\n    Bound: {bound}\n\
             Threshold: {}\n  Current: {}\n",
            texts.limit, texts.value
        );
        for text in [&self.page_top, &self.descriptions[measure]] {
            if !text.is_empty() {
                body += &format!("\n{text}\n");
            }
        }
        let subject = format!("[MRTG-TH] {word} {name} {kind} {bound} {direction} {compared}");
        let mail = Message::builder().from(sender.clone());
        let to = self.addresses[measure].iter().cloned();
        let mail = to.fold(mail, |mail, address| mail.to(address));
        mail.subject(subject).singlepart(SinglePart::plain(body))
    }

    fn texts(&self, action: &Action, rate: f64) -> MailTexts {
        let (bound, direction) = (action.bound.place(), action.direction.place());
        let written = self.bounds.bounds[bound][direction].as_deref();
        let written = decoded(written.unwrap_or_default());
        let text = |put: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            put(&mut out);
            decoded(&out)
        };
        let number = text(&|out| action.value.put(out));
        match (action.value, written.strip_suffix('%')) {
            (Value::Percent(_), Some(percent)) => {
                let limit =
                    self.bounds.max_bytes[direction] * super::leading_number(percent.as_bytes());
                let limit = text(&|out| put_fixed(out, limit / 100.0, 1));
                let rate = text(&|out| put_general(out, rate, 15));
                MailTexts {
                    limit: format!("{percent}% ({limit})"),
                    value: format!("{number}% ({rate})"),
                    number,
                    written,
                }
            }
            _ => MailTexts {
                limit: written.clone(),
                value: number.clone(),
                number,
                written,
            },
        }
    }
}

/// The compared numbers.
struct MailTexts {
    /// The bound, a percentage with its rate.
    limit: String,
    /// The value, a percentage with its rate.
    value: String,
    /// The value alone.
    number: String,
    /// The bound as the configuration has it.
    written: String,
}

/// Hosts and ports of `HOST[:PORT],...`.
fn servers(text: &str) -> Vec<(String, u16)> {
    let hosts = text.split(',').map(str::trim);
    let hosts = hosts.filter(|host| !host.is_empty());
    hosts
        .map(|host| {
            let bare = |name: &str| name.trim_matches(['[', ']']).to_string();
            let is_name = |name: &str| !name.contains(':') || name.ends_with(']');
            let parts = host.rsplit_once(':').filter(|(name, _)| is_name(name));
            let named = parts.and_then(|(name, port)| Some((bare(name), port.parse().ok()?)));
            named.unwrap_or_else(|| (bare(host), SMTP_PORT))
        })
        .collect()
}

/// Ports of the servers of a configuration.
pub fn mail_ports(config: &Config) -> Vec<u16> {
    let mail = config.globals().thresh_mail.as_ref();
    let servers = mail.map_or(Vec::new(), |(server, _)| servers(server));
    servers.into_iter().map(|(_, port)| port).collect()
}

/// The thread, which ends when the [`ThresholdMail`] is dropped.
fn send_all(
    servers: &[(String, u16)],
    hello: &ClientId,
    queue: &Receiver<Message>,
    say: &dyn Fn(&str),
) {
    for mail in queue {
        let mut failed = String::from("no server is named");
        let is_sent = servers.iter().any(|(host, port)| {
            let transport = SmtpTransport::builder_dangerous(host)
                .port(*port)
                .timeout(Some(PATIENCE))
                .hello_name(hello.clone())
                .build();
            let sent = transport.send(&mail);
            if let Err(error) = &sent {
                failed = format!("{host}:{port}: {error}");
            }
            sent.is_ok()
        });
        if !is_sent {
            let to = mail.envelope().to();
            let to: Vec<String> = to.iter().map(ToString::to_string).collect();
            say(&format!(
                "cannot send mail of a threshold to {}: {failed}",
                to.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_ports() {
        let text = "mail, a.example:2525, 192.0.2.1 ,, ::1, [2001:db8::1]:587, [::1]";
        let found = servers(text);
        let found: Vec<(&str, u16)> = found
            .iter()
            .map(|(host, port)| (&host[..], *port))
            .collect();
        assert_eq!(
            found,
            [
                ("mail", 25),
                ("a.example", 2525),
                ("192.0.2.1", 25),
                ("::1", 25),
                ("2001:db8::1", 587),
                ("::1", 25)
            ]
        );
    }
}
