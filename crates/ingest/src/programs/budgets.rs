//! Limits of each user. Wants beyond a limit are counted and logged once; other users are not affected.

use std::collections::HashMap;

use kymo_wire::keeper::Limited;

/// Most files that are read.
const FILES_MAX: usize = 1024;
/// Most slots in use of these files together.
const SLOTS_MAX: usize = 1 << 17;
/// Most words of cells and heads of these slots: 128 MiB a scan. Two PostgreSQL servers of 5,000 sessions each need 105 MiB.
const WORDS_MAX: usize = 16 << 20;
/// Most bytes of room for texts in these slots.
const TEXT_ROOM_MAX: usize = 32 << 20;
/// Most series. A series counts as long as the store has it, also without new values.
const SERIES_MAX: usize = 4096;
/// Most cells of label sets, including those of ended programs.
const CELLS_MAX: usize = 1 << 18;
/// Most bytes of texts read a second.
const TEXTS_MAX: usize = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// A limit that a user wanted to exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Files,
    Words,
    Series,
    Texts,
    /// A file that is not a publisher's, or is damaged.
    Bad,
}

impl Excess {
    /// Index of its count.
    fn place(self) -> usize {
        match self {
            Excess::Files => 0,
            Excess::Words => 1,
            Excess::Series => 2,
            Excess::Texts => 3,
            Excess::Bad => 4,
        }
    }

    const ALL: [(Excess, &str); 5] = [
        (
            Excess::Files,
            "more than 1,024 files where programs publish, or more bytes than a user may have there",
        ),
        (
            Excess::Words,
            "slots in use with more than 128 MiB of cells, or 32 MiB of texts, or more than 131,072 of them",
        ),
        (
            Excess::Series,
            "more than 4,096 series, or 262,144 cells of series, until some go (kymo series rm)",
        ),
        (Excess::Texts, "more than 1 MiB of texts a second"),
        (Excess::Bad, "files that are no publisher's"),
    ];
}

/// Use of the limits by one user.
#[derive(Debug, Default)]
struct Allowance {
    files: usize,
    size: FileSize,
    series: usize,
    cells: usize,
    wants_series: bool,
    texts: usize,
    texts_since_ns: u64,
    exceeded: [u64; 5],
    reported: [bool; 5],
}

/// Use of the limits by all users.
#[derive(Debug, Default)]
pub(super) struct Budgets(HashMap<u32, Allowance>);

/// Size of the slots in use of a file, for its owner's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileSize {
    pub(super) slots: usize,
    pub(super) words: usize,
    pub(super) text_room: usize,
}

impl FileSize {
    fn plus(self, more: FileSize) -> FileSize {
        FileSize {
            slots: self.slots.saturating_add(more.slots),
            words: self.words.saturating_add(more.words),
            text_room: self.text_room.saturating_add(more.text_room),
        }
    }

    fn minus(self, less: FileSize) -> FileSize {
        FileSize {
            slots: self.slots.saturating_sub(less.slots),
            words: self.words.saturating_sub(less.words),
            text_room: self.text_room.saturating_sub(less.text_room),
        }
    }

    fn is_allowed(self) -> bool {
        self.slots <= SLOTS_MAX && self.words <= WORDS_MAX && self.text_room <= TEXT_ROOM_MAX
    }
}

impl Budgets {
    /// Takes a file from its owner's limits, if there is room.
    pub(super) fn take_file(&mut self, uid: u32, size: FileSize) -> Result<(), Excess> {
        let budget = self.0.entry(uid).or_default();
        let all = budget.size.plus(size);
        let excess = match () {
            () if budget.files >= FILES_MAX => Excess::Files,
            () if !all.is_allowed() => Excess::Words,
            () => {
                (budget.files, budget.size) = (budget.files + 1, all);
                return Ok(());
            }
        };
        self.count(uid, excess);
        Err(excess)
    }

    pub(super) fn give_file(&mut self, uid: u32, size: FileSize) {
        if let Some(budget) = self.0.get_mut(&uid) {
            budget.files = budget.files.saturating_sub(1);
            budget.size = budget.size.minus(size);
        }
    }

    /// Notes that a file has grown; `false`: there is no room for its new size.
    pub(super) fn grow_file(&mut self, uid: u32, before: FileSize, size: FileSize) -> bool {
        let budget = self.0.entry(uid).or_default();
        let all = budget.size.minus(before).plus(size);
        let is_allowed = all.is_allowed();
        match is_allowed {
            true => budget.size = all,
            false => self.count(uid, Excess::Words),
        }
        is_allowed
    }

    /// Takes series and cells from a user's limits; `false`: there is no room.
    pub(super) fn take_series(&mut self, uid: u32, series: usize, cells: usize) -> bool {
        let budget = self.0.entry(uid).or_default();
        let has_series = series == 0 || budget.series + series <= SERIES_MAX;
        let has_cells = cells == 0 || budget.cells + cells <= CELLS_MAX;
        if !has_series || !has_cells {
            budget.wants_series = true;
            self.count(uid, Excess::Series);
            return false;
        }
        budget.series += series;
        budget.cells += cells;
        true
    }

    /// Counts existing series and cells, also beyond the limits.
    pub(super) fn add_series(&mut self, uid: u32, series: usize, cells: usize) {
        let budget = self.0.entry(uid).or_default();
        budget.series += series;
        budget.cells += cells;
    }

    pub(super) fn give_series(&mut self, uid: u32, series: usize, cells: usize) {
        if let Some(budget) = self.0.get_mut(&uid) {
            budget.series = budget.series.saturating_sub(series);
            budget.cells = budget.cells.saturating_sub(cells);
        }
    }

    /// Users that wanted more series than the limit.
    pub(super) fn users_who_want_series(&self) -> Vec<u32> {
        let wanting = self.0.iter().filter(|(_, budget)| budget.wants_series);
        wanting.map(|(uid, _)| *uid).collect()
    }

    /// Notes that the user has all wanted series.
    pub(super) fn wants_no_series(&mut self, uid: u32) {
        if let Some(budget) = self.0.get_mut(&uid) {
            budget.wants_series = false;
        }
    }

    /// True if texts of this user may be read now.
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
        self.count_some(uid, excess, 1);
    }

    pub(super) fn count_some(&mut self, uid: u32, excess: Excess, count: u64) {
        self.0.entry(uid).or_default().exceeded[excess.place()] += count;
    }

    /// New messages: each excess of a user once.
    pub(super) fn news(&mut self) -> Vec<(u32, &'static str)> {
        let mut news = Vec::new();
        for (uid, budget) in &mut self.0 {
            for (excess, words) in Excess::ALL {
                let at = excess.place();
                if budget.exceeded[at] > 0 && !budget.reported[at] {
                    budget.reported[at] = true;
                    news.push((*uid, words));
                }
            }
        }
        news
    }

    /// Users that exceeded limits, by number.
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
            slots: 1,
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
    fn a_file_grows_as_far_as_its_owner_has_room() {
        let mut budgets = Budgets::default();
        let size = |slots: usize, words: usize, text_room: usize| FileSize {
            slots,
            words,
            text_room,
        };
        let small = size(1, 100, 10);
        assert_eq!(budgets.take_file(1, small), Ok(()));
        assert_eq!(budgets.take_file(1, small), Ok(()));
        for large in [
            size(SLOTS_MAX, 100, 10),
            size(1, WORDS_MAX - 99, 10),
            size(1, 100, TEXT_ROOM_MAX - 9),
        ] {
            assert!(!budgets.grow_file(1, small, large), "{large:?}");
        }
        let most = size(SLOTS_MAX - 1, WORDS_MAX - 100, TEXT_ROOM_MAX - 10);
        assert!(budgets.grow_file(1, small, most));
        assert_eq!(budgets.take_file(1, small), Err(Excess::Words));
        budgets.give_file(1, most);
        assert_eq!(budgets.take_file(1, most), Ok(()));
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
