//! What each user may have: who wants more is counted, and said once; others have as much as before.

use std::collections::HashMap;

use kymo_wire::keeper::Limited;

/// Files that are read.
const FILES_MAX: usize = 1024;
/// Words of cells and heads in these files together: 8 MiB are read for a scan.
const WORDS_MAX: usize = 1 << 20;
/// Bytes of room for texts in these files together.
const TEXT_ROOM_MAX: usize = 32 << 20;
/// Label sets, of programs that have ended too.
const SETS_MAX: usize = 4096;
/// Cells of these.
const CELLS_MAX: usize = 1 << 18;
/// Bytes of texts a second.
const TEXTS_MAX: usize = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// What was wanted, and is more than a user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Files,
    Words,
    Sets,
    Texts,
    /// A file that is no publisher's.
    Bad,
}

impl Excess {
    /// Its number.
    fn place(self) -> usize {
        match self {
            Excess::Files => 0,
            Excess::Words => 1,
            Excess::Sets => 2,
            Excess::Texts => 3,
            Excess::Bad => 4,
        }
    }

    const ALL: [(Excess, &str); 5] = [
        (Excess::Files, "more than 1,024 files of publishers"),
        (
            Excess::Words,
            "files with more than 8 MiB of cells, or 32 MiB of texts, together",
        ),
        (
            Excess::Sets,
            "more than 4,096 series, or 262,144 cells of series",
        ),
        (Excess::Texts, "more than 1 MiB of texts a second"),
        (Excess::Bad, "files that are no publisher's"),
    ];
}

/// A user's.
#[derive(Debug, Default)]
struct Allowance {
    files: usize,
    words: usize,
    text_room: usize,
    sets: usize,
    cells: usize,
    texts: usize,
    texts_since_ns: u64,
    exceeded: [u64; 5],
    said: [bool; 5],
}

/// Of all users.
#[derive(Debug, Default)]
pub(super) struct Budgets(HashMap<u32, Allowance>);

/// What a file takes of its owner's budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileSize {
    pub(super) words: usize,
    pub(super) text_room: usize,
}

impl Budgets {
    /// Whether there was room for a file.
    pub(super) fn take_file(&mut self, uid: u32, size: FileSize) -> Result<(), Excess> {
        let budget = self.0.entry(uid).or_default();
        let (words, room) = (budget.words + size.words, budget.text_room + size.text_room);
        let excess = match () {
            () if budget.files >= FILES_MAX => Excess::Files,
            () if words > WORDS_MAX || room > TEXT_ROOM_MAX => Excess::Words,
            () => {
                (budget.files, budget.words, budget.text_room) = (budget.files + 1, words, room);
                return Ok(());
            }
        };
        self.count(uid, excess);
        Err(excess)
    }

    pub(super) fn give_file(&mut self, uid: u32, size: FileSize) {
        if let Some(budget) = self.0.get_mut(&uid) {
            budget.files = budget.files.saturating_sub(1);
            budget.words = budget.words.saturating_sub(size.words);
            budget.text_room = budget.text_room.saturating_sub(size.text_room);
        }
    }

    /// Whether there was room for a label set with these cells. What was kept of programs that have ended always has.
    pub(super) fn take_set(&mut self, uid: u32, cells: usize, is_kept: bool) -> bool {
        let budget = self.0.entry(uid).or_default();
        let fits = budget.sets < SETS_MAX && budget.cells + cells <= CELLS_MAX;
        if !fits && !is_kept {
            self.count(uid, Excess::Sets);
            return false;
        }
        budget.sets += 1;
        budget.cells += cells;
        true
    }

    pub(super) fn give_set(&mut self, uid: u32, cells: usize) {
        if let Some(budget) = self.0.get_mut(&uid) {
            budget.sets = budget.sets.saturating_sub(1);
            budget.cells = budget.cells.saturating_sub(cells);
        }
    }

    /// Whether texts of this user may be looked at now.
    pub(super) fn may_read_texts(&mut self, uid: u32, now_ns: u64) -> bool {
        let budget = self.0.entry(uid).or_default();
        if now_ns.saturating_sub(budget.texts_since_ns) >= SECOND_NS {
            (budget.texts, budget.texts_since_ns) = (0, now_ns);
        }
        let may = budget.texts < TEXTS_MAX;
        if !may {
            self.count(uid, Excess::Texts);
        }
        may
    }

    pub(super) fn read_texts(&mut self, uid: u32, bytes: usize) {
        if let Some(budget) = self.0.get_mut(&uid) {
            budget.texts = budget.texts.saturating_add(bytes);
        }
    }

    pub(super) fn count(&mut self, uid: u32, excess: Excess) {
        self.0.entry(uid).or_default().exceeded[excess.place()] += 1;
    }

    /// What is to be said now: each excess of a user once.
    pub(super) fn news(&mut self) -> Vec<(u32, &'static str)> {
        let mut news = Vec::new();
        for (uid, budget) in &mut self.0 {
            for (excess, words) in Excess::ALL {
                let at = excess.place();
                if budget.exceeded[at] > 0 && !budget.said[at] {
                    budget.said[at] = true;
                    news.push((*uid, words));
                }
            }
        }
        news
    }

    /// Users who wanted more, by their numbers.
    pub(super) fn limited(&self, name: impl Fn(u32) -> Vec<u8>) -> Vec<Limited> {
        let limited = self.0.iter();
        let limited = limited.filter(|(_, budget)| budget.exceeded.iter().any(|count| *count > 0));
        let mut limited: Vec<Limited> = limited
            .map(|(&uid, budget)| Limited {
                user: name(uid),
                uid,
                counts: budget.exceeded,
            })
            .collect();
        limited.sort_by_key(|limited| limited.uid);
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_takes_nothing_of_another_one() {
        let mut budgets = Budgets::default();
        let small = FileSize {
            words: 100,
            text_room: 10,
        };
        for _ in 0..FILES_MAX {
            assert_eq!(budgets.take_file(1, small), Ok(()));
        }
        assert_eq!(budgets.take_file(1, small), Err(Excess::Files));
        assert_eq!(budgets.take_file(2, small), Ok(()));
        budgets.give_file(1, small);
        assert_eq!(budgets.take_file(1, small), Ok(()));
        let large = FileSize {
            words: WORDS_MAX,
            ..small
        };
        assert_eq!(budgets.take_file(2, large), Err(Excess::Words));
        assert_eq!(budgets.news().len(), 2);
        assert_eq!(budgets.take_file(2, large), Err(Excess::Words));
        assert_eq!(budgets.news(), [], "said once");
        let limited = budgets.limited(|uid| uid.to_string().into_bytes());
        let counts: Vec<_> = limited.iter().map(|each| (each.uid, each.counts)).collect();
        assert_eq!(counts, [(1, [1, 0, 0, 0, 0]), (2, [0, 2, 0, 0, 0])]);
    }

    #[test]
    fn texts_have_a_limit_a_second() {
        let mut budgets = Budgets::default();
        assert!(budgets.may_read_texts(1, SECOND_NS));
        budgets.read_texts(1, TEXTS_MAX);
        assert!(!budgets.may_read_texts(1, 2 * SECOND_NS - 1));
        assert!(budgets.may_read_texts(2, 2 * SECOND_NS - 1));
        assert!(budgets.may_read_texts(1, 2 * SECOND_NS));
    }
}
