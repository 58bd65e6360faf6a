//! Figures of graphs in the comments of a page, which scripts read, and from which figures of graphs that are not due are taken.

use super::style::Period;

/// Names of a period's figures: largest, mean and newest rates with their percentages, and means of the largest ones.
pub const NAMES: [&str; 11] = [
    "maxin",
    "maxout",
    "maxpercent",
    "avin",
    "avout",
    "avpercent",
    "cuin",
    "cuout",
    "cupercent",
    "avmxin",
    "avmxout",
];
/// Lines of a page in which comments are looked for.
const LINES: usize = 200;

/// Figures of all periods, by [`Period::ALL`] and [`NAMES`]; `None`: there was no graph yet.
pub type Known = [[Option<i64>; 11]; 4];

/// The figures that a page has.
pub fn read(page: &[u8]) -> Known {
    let mut known = Known::default();
    for line in page.split(|&byte| byte == b'\n').take(LINES) {
        let Some((period, name, number)) = comment(line) else {
            continue;
        };
        known[period][name] = Some(number);
    }
    known
}

/// Numbers of the period and of the name, and the figure of `<!-- maxin d 123 -->`.
fn comment(line: &[u8]) -> Option<(usize, usize, i64)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.trim().strip_prefix("<!-- ")?.split(' ');
    let name = words.next()?;
    let name = NAMES.iter().position(|known| *known == name)?;
    let letter = words.next()?;
    let is_period = |period: &Period| letter.len() == 1 && letter.starts_with(period.letter());
    let period = Period::ALL.iter().position(is_period)?;
    let number = words.next()?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    Some((period, name, number[..digits].parse().unwrap_or(0)))
}

/// Appends the comments of a period.
pub(super) fn put(period: Period, known: &[Option<i64>; 11], has_percent: bool, out: &mut String) {
    let [.., top_in, top_out] = *known;
    let has_tops = [top_in, top_out].iter().all(|top| top.unwrap_or(0) != 0);
    for ((at, name), number) in NAMES.iter().enumerate().zip(known) {
        let is_shown = match at {
            2 => has_percent && number.is_some(),
            5 => has_percent,
            8 => has_percent && number.unwrap_or(0) != 0,
            6 | 7 => number.is_some(),
            9 | 10 => has_tops,
            _ => true,
        };
        if is_shown {
            let number = number.map_or(String::new(), |number| number.to_string());
            out.push_str(&format!("<!-- {name} {} {number} -->\n", period.letter()));
        }
    }
}

/// Fuzzes the reader with any bytes as a page: figures that are found are written and found again.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_comments(input: &[u8]) {
    let written = |known: &Known| {
        let mut page = String::new();
        for (period, known) in Period::ALL.into_iter().zip(known) {
            put(period, known, true, &mut page);
        }
        page
    };
    let known = read(input);
    assert!(
        known
            .as_flattened()
            .iter()
            .flatten()
            .all(|&figure| figure >= 0)
    );
    let page = written(&read(written(&known).as_bytes()));
    assert_eq!(page, written(&read(page.as_bytes())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_come_back() {
        let mut page = "<head>\n".to_string();
        let mut known = Known::default();
        known[1] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(Some);
        put(Period::Week, &known[1], true, &mut page);
        assert_eq!(read(page.as_bytes()), known);
        page.clear();
        put(Period::Year, &[None; 11], false, &mut page);
        assert_eq!(
            page,
            "<!-- maxin y  -->\n<!-- maxout y  -->\n<!-- avin y  -->\n<!-- avout y  -->\n"
        );
        assert_eq!(
            read(b"<!-- maxin q 1 -->\n<!-- maxin\n\xff\n"),
            Known::default()
        );
        // A number ends with its digits, as in MRTG.
        for (figure, expected) in [("12x", 12), ("-5", 0), ("", 0), ("99999999999999999999", 0)] {
            let page = format!("<!-- maxin d {figure} -->\n");
            assert_eq!(read(page.as_bytes())[0][0], Some(expected), "{figure}");
        }
    }

    #[test]
    fn any_page_is_read() {
        for page in [
            &b"<!-- maxin d 1 -->\n<!-- cuout y 9 -->\n<!-- cupercent w 0 -->"[..],
            b"<!-- avmxin d 1 -->\n<!-- avmxout d  -->",
            b"<!--  -->\n<!-- maxin dd 1 -->\n<!-- maxin d",
        ] {
            fuzz_comments(page);
        }
    }
}
