//! A table by numbers of series.

/// Series in one page.
const PAGE: usize = 256;

/// Values by numbers of series, in pages that are made when they are needed. Numbers in a hostile journal may be any below 2^28: a
/// number costs a page, and a pointer for each page below it.
pub(super) struct BySeries<T> {
    pages: Vec<Option<Box<[T; PAGE]>>>,
}

impl<T> Default for BySeries<T> {
    fn default() -> BySeries<T> {
        BySeries { pages: Vec::new() }
    }
}

impl<T: Copy + Default> BySeries<T> {
    /// The value of a series; the default if nothing was put there.
    pub(super) fn get(&self, series: u32) -> T {
        let (page, at) = place(series);
        let page = self.pages.get(page).and_then(Option::as_deref);
        page.map_or_else(T::default, |page| page[at])
    }

    /// The value of a series, to be changed.
    pub(super) fn entry(&mut self, series: u32) -> &mut T {
        let (page, at) = place(series);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        &mut self.pages[page].get_or_insert_with(|| Box::new([T::default(); PAGE]))[at]
    }

    /// Sets all values to the default.
    pub(super) fn clear(&mut self) {
        self.pages.clear();
    }
}

fn place(series: u32) -> (usize, usize) {
    let series = usize::try_from(series).unwrap_or(usize::MAX);
    (series / PAGE, series % PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_high_number_takes_one_page() {
        let mut table: BySeries<u8> = BySeries::default();
        *table.entry((1 << 28) - 1) = 7;
        *table.entry(0) = 3;
        assert_eq!(table.get((1 << 28) - 1), 7);
        assert_eq!([table.get((1 << 28) - 2), table.get(256)], [0, 0]);
        assert_eq!(table.pages.iter().flatten().count(), 2);
        table.clear();
        assert_eq!(table.get(0), 0);
    }
}
