//! Signed and encrypted packets of collectd, and every way to forge one.

use super::super::encode::{encrypt, sign};
use super::*;
use crate::collectd::hex::hex;

/// Packets made by collectd 5.12 with user `user0` and password `foo`.
const PLAIN: &str = "0008000c1954fc4000000000 0101000c0000000000000002 000000076831 00 0002000678 00 \
     01000011 726f6f66206f6e206669726500";
const SIGNED: &str =
    "0200 0029 2b9829b627e0717910b7c48b38bde894ad77c8113fbf38c209f005c681fd5405 7573657230";
const ENCRYPTED: &str = "0210 0065 0005 7573657230 b208461fcede5464de94841c7f60ccc7 \
     1045b5e28fcf17eb2664423e00a4e31d56c6c4cebfddf05926af22ecdcd7f590\
     f30d3526b06846631e0aafe062e67dc6f191408249d0c669baef39c5bde049207e277c4127ade55a7c76";

fn signed() -> Vec<u8> {
    hex(&[SIGNED, PLAIN].concat())
}

fn users() -> Users {
    let mut users = Users::default();
    users.add(b"user0", b"foo").unwrap();
    users.add(b"user1", b"bar").unwrap();
    users
}

/// The sections of a datagram: protection and payload of each.
fn sections(
    datagram: &[u8],
    level: SecurityLevel,
    users: Option<&Users>,
) -> Vec<(String, Vec<u8>)> {
    let mut datagram = datagram.to_vec();
    let spelled = |section: Result<Section, Bad>| match section {
        Err(bad) => (format!("{bad:?}"), Vec::new()),
        Ok(section) => {
            let of = |proof: Proof| String::from_utf8_lossy(proof.user).into_owned();
            let how = match section.protection {
                Protection::Plain => "plain".to_string(),
                Protection::Signed(proof) => format!("signed by {}", of(proof)),
                Protection::Encrypted(proof) => format!("encrypted by {}", of(proof)),
            };
            (how, section.payload.to_vec())
        }
    };
    let most = datagram.len() + 1;
    let sections = Datagram::new(&mut datagram, level, users).take(most);
    let sections: Vec<_> = sections.map(spelled).collect();
    assert!(sections.len() < most, "it does not end");
    sections
}

fn how(datagram: &[u8], level: SecurityLevel, users: Option<&Users>) -> Vec<String> {
    let sections = sections(datagram, level, users);
    sections.into_iter().map(|(how, _)| how).collect()
}

#[test]
fn levels_ask_for_what_they_say() {
    let (plain, signed, encrypted) = (hex(PLAIN), signed(), hex(ENCRYPTED));
    let known = users();
    let mut others = Users::default();
    others.add(b"user1", b"foo").unwrap();
    let mut wrong = Users::default();
    wrong.add(b"user0", b"fop").unwrap();
    use SecurityLevel::*;
    let table: &[(&[u8], SecurityLevel, Option<&Users>, &str)] = &[
        (&plain, None, Option::None, "plain"),
        (&plain, None, Some(&known), "plain"),
        (&plain, Sign, Some(&known), "Unprotected"),
        (&plain, Encrypt, Some(&known), "Unprotected"),
        (&signed, None, Option::None, "plain"),
        (&signed, None, Some(&known), "signed by user0"),
        (&signed, Sign, Some(&known), "signed by user0"),
        (&signed, Encrypt, Some(&known), "Unprotected"),
        (&signed, Sign, Option::None, "UnknownUser"),
        (&signed, None, Some(&others), "UnknownUser"),
        (&signed, None, Some(&wrong), "Signature"),
        (&encrypted, None, Some(&known), "encrypted by user0"),
        (&encrypted, Sign, Some(&known), "encrypted by user0"),
        (&encrypted, Encrypt, Some(&known), "encrypted by user0"),
        (&encrypted, None, Option::None, "UnknownUser"),
        (&encrypted, Encrypt, Some(&others), "UnknownUser"),
        (&encrypted, Encrypt, Some(&wrong), "Checksum"),
    ];
    for (datagram, level, users, expected) in table {
        let sections = sections(datagram, *level, *users);
        assert_eq!(sections.len(), 1);
        let (how, payload) = &sections[0];
        assert_eq!(how, expected, "{level:?}");
        let taken = how.contains(' ') || how == "plain";
        assert_eq!(*payload == plain, taken, "{level:?} {how}");
    }
}

#[test]
fn the_proof_is_the_mac_or_the_vector() {
    let users = users();
    for (mut datagram, from, size) in [(signed(), 4, 32), (hex(ENCRYPTED), 11, 16)] {
        let unique = datagram[from..from + size].to_vec();
        let section = Datagram::new(&mut datagram, SecurityLevel::Sign, Some(&users)).next();
        let (Protection::Signed(proof) | Protection::Encrypted(proof)) =
            section.unwrap().unwrap().protection
        else {
            panic!("plain");
        };
        assert_eq!((proof.user, proof.unique), (&b"user0"[..], &unique[..]));
    }
}

/// A changed, missing or added byte is noticed.
#[test]
fn what_was_changed_is_refused() {
    let users = users();
    for datagram in [signed(), hex(ENCRYPTED)] {
        for at in 0..datagram.len() {
            for bit in 0..8 {
                let mut forged = datagram.clone();
                forged[at] ^= 1 << bit;
                for how in how(&forged, SecurityLevel::Sign, Some(&users)) {
                    assert!(!how.contains(' '), "byte {at}, bit {bit}: {how}");
                }
            }
            let cut = how(&datagram[..at], SecurityLevel::Sign, Some(&users));
            assert_eq!(cut.len(), usize::from(at > 0), "{at}");
            assert!(cut.iter().all(|how| !how.contains(' ')), "{at}: {cut:?}");
        }
        let longer = [&datagram[..], b"x"].concat();
        let last = how(&longer, SecurityLevel::Sign, Some(&users)).pop();
        assert!(
            matches!(last.as_deref(), Some("Signature" | "Unprotected")),
            "{last:?}"
        );
    }
}

/// The part's length tells where the user's name begins, so a MAC of other than 32 bytes is refused.
#[test]
fn a_mac_has_32_bytes() {
    let (mut users, payload) = (Users::default(), hex(PLAIN));
    users.add(b"user0", b"foo").unwrap();
    // Behind 32 right bytes a longer MAC has bytes that could count as a name.
    let whole = signed();
    let mac: Vec<u8> = whole[4..36].iter().chain(&whole[4..36]).copied().collect();
    for size in 0..=64 {
        let length = (4 + size + 5) as u16;
        let datagram = [
            &[2, 0][..],
            &length.to_be_bytes(),
            &mac[..size],
            b"user0",
            &payload,
        ]
        .concat();
        let how = how(&datagram, SecurityLevel::Sign, Some(&users));
        let expected = match size {
            32 => "signed by user0",
            // No byte is left for a name.
            0..=27 => "SecurityLength",
            _ => "UnknownUser",
        };
        assert_eq!(how, [expected], "{size}");
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let users = users();
    let name = [b'u'; 65];
    let mut long_signed = Vec::new();
    sign(&mut long_signed, &name, b"foo", b"x");
    let mut long_encrypted = Vec::new();
    encrypt(&mut long_encrypted, &name, b"foo", &[0; 16], b"x");
    let mut empty = Vec::new();
    encrypt(&mut empty, b"user0", b"foo", &[0; 16], b"");
    let head = |kind: u16, length: u16, rest: usize| {
        [
            &kind.to_be_bytes()[..],
            &length.to_be_bytes(),
            &vec![0; rest],
        ]
        .concat()
    };
    let mut beyond = hex(ENCRYPTED);
    beyond[4..6].copy_from_slice(&[0xff, 0xff]);
    let mut nameless = hex(ENCRYPTED);
    nameless[4..6].copy_from_slice(&[0, 0]);
    for (datagram, expected) in [
        (long_signed, "SecurityLength"),
        (long_encrypted, "SecurityLength"),
        (empty, "SecurityLength"),
        (beyond, "SecurityLength"),
        (nameless, "SecurityLength"),
        (head(0x0200, 0, 60), "SecurityLength"),
        (head(0x0200, 35, 60), "SecurityLength"),
        (head(0x0200, 36, 60), "SecurityLength"),
        (head(0x0200, 65, 60), "Cut"),
        (head(0x0200, 40, 0), "Cut"),
        (head(0x0210, 0, 60), "SecurityLength"),
        (head(0x0210, 5, 60), "SecurityLength"),
        (head(0x0210, 22, 60), "SecurityLength"),
        (head(0x0210, 65, 60), "Cut"),
        (vec![2], "Unprotected"),
        (vec![2, 16, 0], "Unprotected"),
    ] {
        let how = how(&datagram, SecurityLevel::Sign, Some(&users));
        assert_eq!(how, [expected], "{}", datagram.escape_ascii());
    }
}

#[test]
fn sections_follow_each_other() {
    let users = users();
    let (plain, encrypted) = (hex(PLAIN), hex(ENCRYPTED));
    let mut other = Vec::new();
    encrypt(&mut other, b"user1", b"bar", &[7; 16], &plain);
    use SecurityLevel::*;
    for (datagram, level, expected) in [
        (
            [&encrypted[..], &other].concat(),
            Encrypt,
            &["encrypted by user0", "encrypted by user1"][..],
        ),
        (
            [&encrypted[..], &plain].concat(),
            None,
            &["encrypted by user0", "plain"],
        ),
        (
            [&encrypted[..], &plain].concat(),
            Sign,
            &["encrypted by user0", "Unprotected"],
        ),
        (
            [&encrypted[..], &signed()].concat(),
            Sign,
            &["encrypted by user0", "signed by user0"],
        ),
        ([&plain[..], &encrypted].concat(), None, &["plain"]),
        (Vec::new(), None, &[]),
    ] {
        assert_eq!(how(&datagram, level, Some(&users)), expected);
    }
}

/// A signature inside a signed or encrypted section is refused, and its parts are not read: a user could otherwise wrap
/// another user's packet.
#[test]
fn nothing_is_protected_twice() {
    let users = users();
    let inner = signed();
    let (mut twice, mut wrapped, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    sign(&mut twice, b"user1", b"bar", &inner);
    encrypt(&mut wrapped, b"user1", b"bar", &[0; 16], &inner);
    sign(
        &mut behind,
        b"user1",
        b"bar",
        &[hex(PLAIN), hex(ENCRYPTED)].concat(),
    );
    for (mut datagram, expected) in [(twice, 0), (wrapped, 0), (behind, 1)] {
        let mut sections = Datagram::new(&mut datagram, SecurityLevel::Sign, Some(&users));
        let mut parts = sections.next().unwrap().unwrap().parts();
        for _ in 0..expected {
            assert!(matches!(parts.next_item(), Some(Ok(_))));
        }
        assert_eq!(parts.next_item(), Some(Err(Bad::Misplaced)));
        assert!(parts.next_item().is_none());
        assert!(sections.next().is_none());
    }
}

#[test]
fn what_is_encoded_is_collectds() {
    let (plain, encrypted) = (hex(PLAIN), hex(ENCRYPTED));
    let mut made = Vec::new();
    sign(&mut made, b"user0", b"foo", &plain);
    assert_eq!(made, signed());
    made.clear();
    let iv = *encrypted[11..].first_chunk().unwrap();
    encrypt(&mut made, b"user0", b"foo", &iv, &plain);
    assert_eq!(made, encrypted);
}
