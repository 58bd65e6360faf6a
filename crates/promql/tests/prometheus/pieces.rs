//! Texts made of pieces of others, and numbers to choose by, always the same ones.

/// Texts, each of one or two others with tokens left out, doubled, moved or put together.
pub(crate) fn made(texts: &[String], count: usize) -> Vec<String> {
    let tokens: Vec<Vec<&str>> = texts.iter().map(|text| pieces(text)).collect();
    let mut numbers = Numbers(1);
    (0..count)
        .map(|_| {
            let first = &tokens[numbers.below(tokens.len())];
            let second = &tokens[numbers.below(tokens.len())];
            mixed(first, second, &mut numbers)
        })
        .collect()
}

fn mixed(first: &[&str], second: &[&str], numbers: &mut Numbers) -> String {
    let mut mixed = first.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(mixed.len() + 1);
        let from = numbers.below(second.len() + 1);
        let thru = from + numbers.below(4);
        let taken = &second[from..thru.min(second.len())];
        match numbers.below(4) {
            0 if at < mixed.len() => {
                mixed.remove(at);
            }
            1 if at < mixed.len() => mixed.insert(at, mixed[at]),
            2 if at < mixed.len() => {
                mixed.splice(at..=at, taken.iter().copied());
            }
            _ => {
                mixed.splice(at..at, taken.iter().copied());
            }
        }
    }
    let mut text = mixed.concat();
    let end = (0..=text.len().min(400))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    text
}

/// Words, runs of blanks, and other characters alone.
fn pieces(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || matches!(c, '_' | '.') => 1,
        _ if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in text.char_indices() {
        if at > start && (kind(c) != last || kind(c) == 0) {
            pieces.push(&text[start..at]);
            start = at;
        }
        last = kind(c);
    }
    pieces.push(&text[start..]);
    pieces
}

/// Numbers without an order.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let limit = u64::try_from(limit.max(1)).unwrap();
        usize::try_from((mixed ^ (mixed >> 31)) % limit).unwrap()
    }
}
