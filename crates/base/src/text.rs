//! One source's last text, and the difference to its next one. The cost of a sample
//! is here: compare in words of eight bytes, and parse only the numbers that moved.

use crate::scan;
use crate::template::Template;
use crate::words::Words;

/// A text together with the values a template found in it.
#[derive(Default, Debug)]
pub struct Text {
    /// The bytes as read.
    pub bytes: Vec<u8>,
    /// The template's values.
    pub values: Vec<u64>,
    /// Where each value ends in `bytes`.
    pub ends: Vec<u32>,
}

/// A value that moved: its slot and its last value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Index of the slot.
    pub slot: u32,
    /// The value before.
    pub last: u64,
}

/// Where the present text and its next one stand at the same place of the template.
#[derive(Clone, Copy, Default, Debug)]
pub struct Alignment {
    from: usize,
    to: usize,
    slot: usize,
}

/// A part of the next text.
#[derive(Clone, Copy)]
struct Part<'a> {
    bytes: &'a [u8],
    /// Where it begins in the next text.
    start: usize,
    /// End of the part of the present text that this part is compared with.
    old_end: usize,
    /// True if the bytes behind this part are known, so that numbers may move their places.
    is_rest: bool,
}

impl Text {
    /// Moves on to `next` if `template`, which fits the present text, fits it too: notes what
    /// moved in `changes` and updates values and ends, but not `bytes`, which the caller
    /// swaps or copies. `false`: it does not fit, values and ends are spoiled.
    pub fn advance(
        &mut self,
        template: &Template,
        words: &mut Words,
        next: &[u8],
        changes: &mut Vec<Change>,
    ) -> bool {
        changes.clear();
        self.advance_from(Alignment::default(), template, words, next, changes)
    }

    /// As [`Text::advance`], from a place up to which [`Text::patch`] came, and with the changes it found.
    pub fn advance_from(
        &mut self,
        mut place: Alignment,
        template: &Template,
        words: &mut Words,
        next: &[u8],
        changes: &mut Vec<Change>,
    ) -> bool {
        let part = Part {
            bytes: next,
            start: 0,
            old_end: self.bytes.len(),
            is_rest: true,
        };
        let fits = self.walk(&mut place, part, template, words, changes);
        if fits {
            let Alignment { from, to, slot } = place;
            shift(&mut self.ends[slot..], from, to);
        }
        fits
    }

    /// Moves on by a piece of the next text that begins at `start`, where `bytes` is the next text up to there. Whole lines,
    /// in which all numbers keep their places: `bytes` becomes the next text up to the end of the piece. `false`: this piece is not
    /// like that. `bytes` is as it was, and [`Text::advance_from`] goes on from `place` with all of the next text.
    pub fn patch(
        &mut self,
        place: &mut Alignment,
        (start, piece): (usize, &[u8]),
        template: &Template,
        words: &mut Words,
        changes: &mut Vec<Change>,
    ) -> bool {
        let old_end = start + piece.len();
        match self.bytes.get(start..old_end) {
            None => return false,
            Some(old) if old == piece => {
                (place.from, place.to) = (old_end, old_end);
                return true;
            }
            Some(_) => {}
        }
        let part = Part {
            bytes: piece,
            start,
            old_end,
            is_rest: false,
        };
        let fits = self.walk(place, part, template, words, changes);
        if fits {
            self.bytes[start..old_end].copy_from_slice(piece);
        }
        fits
    }

    /// Takes `place` to the end of a part of the next text.
    fn walk(
        &mut self,
        place: &mut Alignment,
        next: Part,
        template: &Template,
        words: &mut Words,
        changes: &mut Vec<Change>,
    ) -> bool {
        let old = &self.bytes[..next.old_end];
        let slots = template.slots();
        let next_end = next.start + next.bytes.len();
        loop {
            let Alignment { from, to, slot } = *place;
            let alike = scan::common_prefix(&old[from..], &next.bytes[to - next.start..]);
            let stop = from + alike;
            if stop == old.len() && to + alike == next_end {
                (place.from, place.to) = (stop, next_end);
                // Nothing of the rest has moved but its end: the numbers there are the caller's.
                if next.is_rest {
                    (place.from, place.to) = (from, to);
                }
                return true;
            }
            let behind = ended_before(&self.ends[slot..], stop);
            shift(&mut self.ends[slot..slot + behind], from, to);
            let slot = slot + behind;
            place.slot = slot;
            let Some(class) = slots.get(slot).map(|s| s.class) else {
                return false;
            };
            let end = self.ends[slot] as usize;
            let last = self.values[slot];
            let start = end - class.width(last, words);
            if start < from || start > stop {
                return false;
            }
            let at = to + (start - from) - next.start;
            let Some((value, next_end)) = class.parse(next.bytes, at, words) else {
                return false;
            };
            let next_end = next.start + next_end;
            if next_end != end && !next.is_rest {
                return false;
            }
            if value != last {
                self.values[slot] = value;
                changes.push(Change {
                    slot: slot as u32,
                    last,
                });
            }
            self.ends[slot] = next_end as u32;
            *place = Alignment {
                from: end,
                to: next_end,
                slot: slot + 1,
            };
        }
    }
}

/// How many of these ends, which ascend, are before `stop`. It is mostly few of many.
#[inline]
fn ended_before(ends: &[u32], stop: usize) -> usize {
    let is_before = |&end: &u32| (end as usize) < stop;
    let mut most = 4;
    while ends.get(most - 1).is_some_and(is_before) {
        most *= 2;
    }
    ends[..most.min(ends.len())].partition_point(is_before)
}

/// Moves ends by the distance between `from` and `to`.
#[inline]
fn shift(ends: &mut [u32], from: usize, to: usize) {
    if from != to {
        let by = (to as u32).wrapping_sub(from as u32);
        for end in ends {
            *end = end.wrapping_add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Grammar, derive};
    use proptest::prelude::*;

    fn text_of(bytes: &[u8], grammar: Grammar, words: &mut Words) -> (Template, Text) {
        let mut text = Text {
            bytes: bytes.to_vec(),
            ..Text::default()
        };
        let template = derive(bytes, grammar, words, &mut text.values, &mut text.ends);
        (template, text)
    }

    /// If `a`'s template advances to `b`, it must render `b`, and its ends must be those of a fresh match.
    fn check(a: &[u8], b: &[u8], grammar: Grammar) -> bool {
        let mut words = Words::default();
        let (template, mut text) = text_of(a, grammar, &mut words);
        let mut changes = Vec::new();
        let before = text.values.clone();
        if !text.advance(&template, &mut words, b, &mut changes) {
            return false;
        }
        let mut out = Vec::new();
        assert!(template.render(&text.values, &words, &mut out));
        assert_eq!(out, b);
        let (mut values, mut ends) = (Vec::new(), Vec::new());
        assert!(template.matches(b, &mut words, &mut values, &mut ends));
        assert_eq!((&values, &ends), (&text.values, &text.ends));
        for (slot, (old, new)) in before.iter().zip(&values).enumerate() {
            let change = changes.iter().find(|c| c.slot as usize == slot);
            assert_eq!(change.map(|c| c.last), (old != new).then_some(*old));
        }
        true
    }

    #[test]
    fn neighbours_in_time() {
        for (a, b, fits) in [
            (&b"a 9 b 99\n"[..], &b"a 10 b 100\n"[..], true),
            (b"a 10 b 100\n", b"a 9 b 99\n", true),
            (b"x    99    1\n", b"x   100  222\n", true),
            (b"x    99    1\n", b"x   100 2222\n", true),
            (b"eth0:     99  1\n", b"eth0: 123456  1\n", true),
            (b"1.05 2", b"1.50 2", true),
            (b"1.50 2", b"1.05 2", true),
            (b"1 a 2", b"1 b 2", false),
            (b"1 a 2", b"1 a 2 3", false),
            (b"1 2", b"1  2", false),
            (b"1 2", b"1", false),
            (b"", b"1", false),
            (b"5", b"", false),
            (b"5", b"05", false),
        ] {
            assert_eq!(
                check(a, b, Grammar::Plain),
                fits,
                "{} -> {}",
                a.escape_ascii(),
                b.escape_ascii()
            );
        }
        assert!(check(b"7 (sh) S 1 2", b"7 (a b) R 1 2222", Grammar::Stat));
        assert!(check(
            b"Name:\tsh\nVmRSS:\t   9 kB\n",
            b"Name:\tbash\nVmRSS:\t  10 kB\n",
            Grammar::Keyed
        ));
    }

    #[test]
    fn a_piece_in_which_numbers_move_their_places_changes_no_bytes() {
        let (old, next) = (b"c 5\na 1000\nb 2000\n", b"c 6\na 7\nb 2001\n");
        let mut words = Words::default();
        let (template, mut text) = text_of(old, Grammar::Plain, &mut words);
        let (mut place, mut changes) = (Alignment::default(), Vec::new());
        let mut patch = |text: &mut Text, start: usize, end: usize| {
            let piece = (start, &next[start..end]);
            text.patch(&mut place, piece, &template, &mut words, &mut changes)
        };
        assert!(patch(&mut text, 0, 4));
        assert_eq!(text.bytes, b"c 6\na 1000\nb 2000\n");
        assert!(!patch(&mut text, 4, 8), "the old line is longer");
        assert!(!patch(&mut text, 4, next.len()));
        assert_eq!(text.bytes, b"c 6\na 1000\nb 2000\n");
        assert!(text.advance_from(place, &template, &mut words, next, &mut changes));
        assert_eq!(text.values, [6, 7, 2001]);
        let slots: Vec<u32> = changes.iter().map(|change| change.slot).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(text.ends, [3, 7, 14]);
    }

    proptest! {
        #[test]
        fn numbers_that_move(values in proptest::collection::vec((any::<u16>(), any::<u16>(), 0usize..4), 1..30)) {
            let render = |pick: fn(&(u16, u16, usize)) -> u16| {
                let mut out = Vec::new();
                for row in &values {
                    let value = u64::from(pick(row));
                    match row.2 {
                        0 => { out.push(b' '); scan::put_number(&mut out, value, 0, b' '); }
                        1 => { out.extend(b" x"); scan::put_number(&mut out, value, 8, b' '); }
                        2 => { out.extend(b" 1."); scan::put_number(&mut out, value % 100, 2, b'0'); }
                        _ => { out.extend(b"\nk: "); scan::put_number(&mut out, value, 0, b' '); out.extend(b" kB"); }
                    }
                }
                out
            };
            check(&render(|r| r.0), &render(|r| r.1), Grammar::Plain);
        }

        #[test]
        fn any_bytes(a: Vec<u8>, b: Vec<u8>) {
            for grammar in [Grammar::Plain, Grammar::Stat, Grammar::Keyed, Grammar::Word] {
                check(&a, &b, grammar);
            }
        }

        #[test]
        fn kernel_like(a in "[0-9 .:a(\n)]{0,40}", b in "[0-9 .:a(\n)]{0,40}") {
            for grammar in [Grammar::Plain, Grammar::Stat, Grammar::Keyed] {
                check(a.as_bytes(), b.as_bytes(), grammar);
            }
        }
    }
}
