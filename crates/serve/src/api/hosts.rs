//! `/kymo/v1/hosts`: senders and hosts of collectd's protocol, with their
//! counts, and targets that are scraped.

use std::sync::Arc;

use axum::extract::State;
use kymo_base::name::DisplayName;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{
    Accounts, Count, HostAccount, LineAccount, OddType, PushAccount, ReceiverAccount,
    ScrapedTarget, SenderAccount, SocketAccount,
};
use serde_json::{Value as Json, json};

use super::{Hub, RequestHead};
use crate::answer::{Answer, Refusal};
use crate::number;
use crate::turns::Lane;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let scopes = head.scopes;
    let hosts = move |hub: &Hub| {
        let (accounts, lines, pushers, scraped) = match &hub.stored {
            Some(stored) => {
                let keeper = stored.keeper().keeper();
                let accounts = keeper.accounts().map_err(Refusal::unavailable)?;
                let lines = keeper.lines().map_err(Refusal::unavailable)?;
                let scraped = keeper.targets().map_err(Refusal::unavailable)?;
                (accounts, lines, stored.pushers(scopes)?, scraped)
            }
            None => Default::default(),
        };
        let others = (&*lines, &*pushers, &*scraped);
        let receivers = receivers(&hub.receivers());
        Ok(body(&accounts, others, receivers, RealClock.now().real_ns))
    };
    hub.answer_json(Lane::Keeper, &head, hosts).await
}

fn body(
    accounts: &Accounts,
    (lines, pushers, scraped): (&[LineAccount], &[PushAccount], &[ScrapedTarget]),
    receivers: Json,
    now_ns: i64,
) -> String {
    let Accounts {
        sockets,
        hosts,
        types,
    } = accounts;
    let sockets: Vec<Json> = sockets.iter().map(|each| socket(each, now_ns)).collect();
    let hosts: Vec<Json> = hosts.iter().map(|each| host(each, now_ns)).collect();
    let types: Vec<Json> = types.iter().map(odd_type).collect();
    let lines: Vec<Json> = lines.iter().map(line).collect();
    let pushers: Vec<Json> = pushers.iter().map(|each| pusher(each, now_ns)).collect();
    let scraped: Vec<Json> = scraped.iter().map(target).collect();
    let now = number::seconds(now_ns);
    let body = json!({
        "now": now,
        "sockets": sockets,
        "lines": lines,
        "pushers": pushers,
        "scraped": scraped,
        "receivers": receivers,
        "hosts": hosts,
        "types": types,
    });
    body.to_string()
}

/// Receivers of `[[forward]]`, with their counts.
pub(super) fn receivers(accounts: &[ReceiverAccount]) -> Json {
    let receivers = accounts.iter().map(|account| {
        json!({
            "name": shown(account.name.as_bytes()),
            "up": account.is_up,
            "sent": account.sent,
            "refused": account.refused,
            "missed": account.missed,
            "requests": account.requests,
            "failed": account.failed,
            "sent_bytes": account.bytes,
            "backlog_bytes": account.backlog_bytes,
            "backlog_age": account.backlog_age_s,
        })
    });
    Json::Array(receivers.collect())
}

fn line(account: &LineAccount) -> Json {
    let refused = account.refused.iter();
    let refused = refused.map(|(why, count)| json!({ "why": shown(why), "count": count }));
    json!({
        "protocol": shown(&account.protocol),
        "clients": account.clients,
        "datagrams": account.datagrams,
        "samples": account.samples,
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn pusher(account: &PushAccount, now_ns: i64) -> Json {
    let refused = account.refused.iter();
    let refused = refused.map(|(why, count)| json!({ "why": why, "count": count }));
    json!({
        "protocol": account.protocol,
        "sender": shown(account.sender.as_bytes()),
        "seen": seen(account.age_s, now_ns),
        "requests": account.requests,
        "samples": account.samples,
        "series": account.series,
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn target(target: &ScrapedTarget) -> Json {
    let scraped_s = number::seconds(target.scraped_ms.saturating_mul(1_000_000));
    json!({
        "job": shown(target.job.as_bytes()),
        "url": shown(target.url.as_bytes()),
        "seen": (target.scraped_ms != 0).then_some(scraped_s),
        "interval": rounded(std::time::Duration::from_millis(target.interval_ms).as_secs_f64()),
        "duration": rounded(target.duration_s),
        "samples": target.samples,
        "error": shown(target.error.as_bytes()),
    })
}

fn odd_type(odd: &OddType) -> Json {
    json!({
        "type": shown(&odd.name),
        "series": shown(&odd.series),
        "known": odd.known,
        "values": odd.came,
    })
}

fn socket(socket: &SocketAccount, now_ns: i64) -> Json {
    let senders: Vec<Json> = socket
        .senders
        .iter()
        .map(|each| sender(each, now_ns))
        .collect();
    json!({ "name": shown(&socket.name), "lost": socket.lost, "senders": senders })
}

fn sender(sender: &SenderAccount, now_ns: i64) -> Json {
    let mut shown = json!({
        "address": sender.address.map(|address| address.to_string()),
        "seen": seen(sender.age_s, now_ns),
        "offset": rounded(sender.offset_s),
    });
    for count in Count::ALL {
        shown[count.name()] = sender.counts[count].into();
    }
    shown
}

fn host(host: &HostAccount, now_ns: i64) -> Json {
    json!({
        "host": shown(&host.host),
        "address": host.address.map(|address| address.to_string()),
        "seen": seen(host.age_s, now_ns),
        "gap": rounded(host.gap_s),
        "offset": rounded(host.offset_s),
        "rate": rounded(host.rate),
        "values": host.values,
    })
}

fn shown(name: &[u8]) -> String {
    DisplayName(name).to_string()
}

/// Time of an event by the current clock, from its age: a clock that was set
/// since changes no age.
fn seen(age_s: f64, now_ns: i64) -> f64 {
    number::seconds(now_ns.saturating_sub(number::nanoseconds(age_s)))
}

/// A number to the thousandth; `null`: unknown.
fn rounded(value: f64) -> Json {
    Json::from((value * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_null_and_names_are_safe_to_show() {
        let host = HostAccount {
            host: b"a\n<b>".to_vec(),
            address: None,
            age_s: 2.5,
            gap_s: f64::NAN,
            offset_s: -1.23456,
            rate: f64::NAN,
            values: 7,
        };
        let accounts = Accounts {
            sockets: Vec::new(),
            hosts: vec![host],
            types: vec![OddType {
                name: b"t<".to_vec(),
                series: b"a/t.rrd".to_vec(),
                known: 0,
                came: 2,
            }],
        };
        let lines = [LineAccount {
            protocol: b"statsd".to_vec(),
            clients: 1,
            datagrams: 2,
            samples: 3,
            refused: vec![(b"a name".to_vec(), 4)],
        }];
        let pushers = [PushAccount {
            protocol: "otlp".into(),
            sender: "192.0.2.7".into(),
            age_s: 2.0,
            requests: 1,
            samples: 2,
            series: 3,
            refused: vec![("a sample".into(), 4)],
        }];
        let scraped = [ScrapedTarget {
            job: "node".into(),
            url: "http://a:1/metrics".into(),
            interval_ms: 15_000,
            scraped_ms: 9000,
            duration_s: 0.25,
            samples: 5,
            error: "x\n".into(),
            ..ScrapedTarget::default()
        }];
        let forwarded = [ReceiverAccount {
            name: "a".into(),
            sent: 1,
            refused: 2,
            missed: 3,
            requests: 4,
            failed: 5,
            backlog_bytes: 6,
            bytes: 7,
            is_up: true,
            backlog_age_s: 1.5,
        }];
        assert_eq!(
            body(
                &accounts,
                (&lines, &pushers, &scraped),
                receivers(&forwarded),
                10_000_000_000
            ),
            r#"{"hosts":[{"address":null,"gap":null,"host":"a\\x0a<b>","offset":-1.235,"rate":null,"seen":7.5,"values":7}],"lines":[{"clients":1,"datagrams":2,"protocol":"statsd","refused":[{"count":4,"why":"a name"}],"samples":3}],"now":10.0,"pushers":[{"protocol":"otlp","refused":[{"count":4,"why":"a sample"}],"requests":1,"samples":2,"seen":8.0,"sender":"192.0.2.7","series":3}],"receivers":[{"backlog_age":1.5,"backlog_bytes":6,"failed":5,"missed":3,"name":"a","refused":2,"requests":4,"sent":1,"sent_bytes":7,"up":true}],"scraped":[{"duration":0.25,"error":"x\\x0a","interval":15.0,"job":"node","samples":5,"seen":9.0,"url":"http://a:1/metrics"}],"sockets":[],"types":[{"known":0,"series":"a/t.rrd","type":"t<","values":2}]}"#
        );
    }
}
