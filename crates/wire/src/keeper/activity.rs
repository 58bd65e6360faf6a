//! ACTIVITY: the activity of the sessions of a database server, as the server itself reports it by SQL.

use super::body::{Put, Take};
use super::programs::{list, numbers, put_labels, put_numbers, take_labels};

/// Most sessions of one ACTIVITY.
const SESSIONS_MAX: usize = 4096;

/// Activity of the sessions of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerActivity {
    /// Name of the server in the configuration.
    pub server: Vec<u8>,
    /// Port of the server in the configuration.
    pub port: u16,
    /// Number of the user that owns the server's socket.
    pub uid: u32,
    /// Start of the server, nanoseconds since 1970; 0: not known.
    pub started_ns: u64,
    /// Sessions, the working ones first.
    pub sessions: Vec<ServerSession>,
    /// Number of sessions for which there was no room.
    pub left_out: u32,
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSession {
    /// Pid in the server's namespace; 0: a prepared transaction has none.
    pub pid: u32,
    /// The number of a prepared transaction; 0: this is a session.
    pub xid: u32,
    /// The leader of processes that work together; 0: none.
    pub leader: u32,
    /// Start of the session, nanoseconds since 1970.
    pub started_ns: u64,
    /// State of a slot: 0 not known, 1 idle, 2 active, 3 idle in a transaction, 4 idle in a failed one, 6 prepared.
    pub state: u8,
    /// Start of the command, nanoseconds since 1970; 0: there was none.
    pub command_ns: u64,
    /// Time of the last change of `state`, nanoseconds since 1970; 0: not known.
    pub since_ns: u64,
    /// Event that the session waits for, such as `Lock:relation`.
    pub wait: Vec<u8>,
    /// Pids of the processes that block the session.
    pub blocked_by: Vec<u32>,
    /// Numbers of the prepared transactions that block the session.
    pub blocked_by_xids: Vec<u32>,
    /// Names and values of labels.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// The command that runs or ran last, without its literals.
    pub text: Vec<u8>,
    /// True if the text was longer.
    pub is_cut: bool,
}

impl ServerActivity {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.text(&self.server);
        out.u32(self.port.into());
        out.u32(self.uid);
        out.u64(self.started_ns);
        out.length(self.sessions.len());
        self.sessions.iter().for_each(|session| session.put(out));
        out.u32(self.left_out);
    }

    pub(super) fn take(body: &mut Take) -> Option<ServerActivity> {
        Some(ServerActivity {
            server: body.text()?.to_vec(),
            port: u16::try_from(body.u32()?).ok()?,
            uid: body.u32()?,
            started_ns: body.u64()?,
            sessions: list(body, ServerSession::take)
                .filter(|sessions| sessions.len() <= SESSIONS_MAX)?,
            left_out: body.u32()?,
        })
    }
}

impl ServerSession {
    /// Bytes of the session in a request.
    pub fn bytes(&self) -> usize {
        let labels = self.labels.iter();
        let labels = labels.map(|(name, value)| name.len() + value.len() + 4);
        let blockers = 4 * (self.blocked_by.len() + self.blocked_by_xids.len());
        48 + self.wait.len() + blockers + self.text.len() + labels.sum::<usize>()
    }

    fn put(&self, out: &mut Vec<u8>) {
        for number in [self.pid, self.xid, self.leader] {
            out.u32(number);
        }
        out.u64(self.started_ns);
        out.u8(self.state);
        out.u64(self.command_ns);
        out.u64(self.since_ns);
        out.text(&self.wait);
        put_numbers(out, &self.blocked_by);
        put_numbers(out, &self.blocked_by_xids);
        put_labels(out, &self.labels);
        out.text(&self.text);
        out.u8(self.is_cut.into());
    }

    fn take(body: &mut Take) -> Option<ServerSession> {
        Some(ServerSession {
            pid: body.u32()?,
            xid: body.u32()?,
            leader: body.u32()?,
            started_ns: body.u64()?,
            state: body.u8()?,
            command_ns: body.u64()?,
            since_ns: body.u64()?,
            wait: body.text()?.to_vec(),
            blocked_by: numbers(body)?,
            blocked_by_xids: numbers(body)?,
            labels: take_labels(body)?,
            text: body.text()?.to_vec(),
            is_cut: body.flag()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, HEAD, KeeperRequest};
    use super::*;

    #[test]
    fn what_is_written_is_read_and_cut_short_it_is_not() {
        let session = ServerSession {
            pid: 1,
            xid: 6,
            leader: 2,
            started_ns: 3,
            state: 2,
            command_ns: 4,
            since_ns: 5,
            wait: b"Lock:relation".to_vec(),
            blocked_by: vec![7, 8],
            blocked_by_xids: vec![9],
            labels: vec![(b"user".to_vec(), b"ada".to_vec())],
            text: b"SELECT ?".to_vec(),
            is_cut: true,
        };
        let bytes = session.bytes();
        let activity = ServerActivity {
            server: b"main".to_vec(),
            port: 5432,
            uid: 100,
            started_ns: 9,
            sessions: vec![session; 2],
            left_out: 3,
        };
        let request = KeeperRequest::Activity(activity.clone());
        let frame = &request.frame()[HEAD..];
        assert_eq!(KeeperRequest::read(frame), Ok(request));
        for end in 2..frame.len() {
            assert!(KeeperRequest::read(&frame[..end]).is_err(), "{end} bytes");
        }
        let none = KeeperRequest::Activity(ServerActivity {
            sessions: Vec::new(),
            ..activity
        });
        assert_eq!(frame.len() - none.frame()[HEAD..].len(), 2 * bytes);
        assert_eq!(
            KeeperRequest::read(&KeeperRequest::Watched.frame()[HEAD..]),
            Ok(KeeperRequest::Watched)
        );
        for is_watched in [true, false] {
            let answer = Answer::Watched(is_watched);
            assert_eq!(Answer::read(&answer.frame()[HEAD..]), Ok(answer));
        }
    }

    #[test]
    fn sessions_are_not_without_number() {
        let activity = ServerActivity {
            sessions: vec![ServerSession::default(); SESSIONS_MAX + 1],
            ..ServerActivity::default()
        };
        let request = KeeperRequest::Activity(activity);
        assert!(KeeperRequest::read(&request.frame()[HEAD..]).is_err());
    }
}
