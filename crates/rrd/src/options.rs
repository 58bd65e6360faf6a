//! Parses options of a command line like rrdtool: short ones in clusters, long ones with `=` or the next
//! argument, both anywhere between the operands. `--` ends them.

use crate::error::Error;

/// Longest error text, bytes.
const TEXT_MAX: usize = 47;

/// Tells if an option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The option takes no argument.
    Nothing,
    /// The option takes an argument.
    Argument,
}

/// An option: its long name, its letter, and its argument.
pub type Known = (&'static str, u8, Takes);

/// A parsed piece of the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// An option by its letter, and its argument, which is empty if it takes none.
    Option(u8, &'a [u8]),
    /// An error; parsing goes on behind it.
    Bad(Error),
}

/// Parses `args` without the command's name: options in their order, and operands in their order.
pub fn read<'a>(args: &[&'a [u8]], known: &[Known]) -> (Vec<Piece<'a>>, Vec<&'a [u8]>) {
    let (mut pieces, mut operands) = (Vec::new(), Vec::new());
    let mut rest = args;
    let mut lost = false;
    while let [arg, tail @ ..] = rest {
        rest = tail;
        match *arg {
            b"--" => {
                operands.extend_from_slice(rest);
                break;
            }
            [b'-', b'-', long @ ..] => {
                let is_last = rest.is_empty();
                pieces.push(read_long(long, &mut rest, known));
                let takes = known.iter().find(|known| known.0.as_bytes() == long);
                lost = is_last && takes.is_some_and(|known| known.2 == Takes::Argument);
            }
            [b'-', cluster @ ..] if !cluster.is_empty() => {
                read_cluster(cluster, &mut rest, known, &mut pieces);
            }
            operand => operands.push(operand),
        }
    }
    // rrdtool counts the missing argument, and so drops the last operand.
    if lost {
        operands.pop();
    }
    (pieces, operands)
}

fn read_long<'a>(long: &'a [u8], rest: &mut &[&'a [u8]], known: &[Known]) -> Piece<'a> {
    let equals = long.iter().position(|&byte| byte == b'=');
    let name = &long[..equals.unwrap_or(long.len())];
    let Some(&(name, letter, takes)) = known.iter().find(|known| known.0.as_bytes() == name) else {
        return bad("invalid option", long);
    };
    match (takes, equals) {
        (Takes::Nothing, None) => Piece::Option(letter, b""),
        (Takes::Nothing, Some(_)) => bad("option takes no arguments", name.as_bytes()),
        (Takes::Argument, Some(at)) => Piece::Option(letter, &long[at + 1..]),
        (Takes::Argument, None) => match take(rest) {
            Some(argument) => Piece::Option(letter, argument),
            None => bad("option requires argument", name.as_bytes()),
        },
    }
}

fn read_cluster<'a>(
    mut cluster: &'a [u8],
    rest: &mut &[&'a [u8]],
    known: &[Known],
    pieces: &mut Vec<Piece<'a>>,
) {
    while let [letter, tail @ ..] = cluster {
        let takes = known.iter().find(|known| known.1 == *letter);
        cluster = tail;
        match takes.map(|known| known.2) {
            // The rest of the cluster is dropped, too.
            None => {
                pieces.push(bad("invalid option", &[*letter]));
                return;
            }
            Some(Takes::Nothing) => pieces.push(Piece::Option(*letter, b"")),
            Some(Takes::Argument) => {
                let own = Some(tail).filter(|tail| !tail.is_empty());
                pieces.push(match own.or_else(|| take(rest)) {
                    Some(argument) => Piece::Option(*letter, argument),
                    None => bad("option requires an argument", &[*letter]),
                });
                return;
            }
        }
    }
}

fn take<'a>(rest: &mut &[&'a [u8]]) -> Option<&'a [u8]> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    Some(first)
}

fn bad(what: &str, which: &[u8]) -> Piece<'static> {
    let mut text = [what.as_bytes(), b" -- '", which, b"'"].concat();
    text.truncate(TEXT_MAX);
    Piece::Bad(Error::new(String::from_utf8_lossy(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        ("start", b'b', Takes::Argument),
        ("no-overwrite", b'O', Takes::Nothing),
    ];

    #[test]
    fn options_are_read_anywhere() {
        let cases: &[(&[&str], &str)] = &[
            (&["f", "-b", "1", "DS"], "b=1 | f DS"),
            (&["-Ob1", "f"], "O= b=1 | f"),
            (&["--start=1", "f", "--no-overwrite"], "b=1 O= | f"),
            (&["--start", "-O", "f"], "b=-O | f"),
            (&["-O", "--", "-O", "f"], "O= | -O f"),
            (&["-", "-b"], "option requires an argument -- 'b' | -"),
            (&["--start"], "option requires argument -- 'start' |"),
            (
                &["a", "b", "--start"],
                "option requires argument -- 'start' | a",
            ),
            (
                &["--23456789-123456789-123456789-123456789"],
                "invalid option -- '23456789-123456789-123456789 |",
            ),
            (&["--sta=5"], "invalid option -- 'sta=5' |"),
            (&["-xO"], "invalid option -- 'x' |"),
            (
                &["--no-overwrite=1"],
                "option takes no arguments -- 'no-overwrite' |",
            ),
        ];
        for (args, expected) in cases {
            let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
            let (pieces, operands) = read(&args, KNOWN);
            let mut words: Vec<String> = Vec::new();
            for piece in pieces {
                words.push(match piece {
                    Piece::Option(letter, argument) => {
                        format!(
                            "{}={}",
                            char::from(letter),
                            String::from_utf8_lossy(argument)
                        )
                    }
                    Piece::Bad(error) => error.text,
                });
            }
            words.push("|".into());
            words.extend(
                operands
                    .iter()
                    .map(|word| String::from_utf8_lossy(word).into()),
            );
            assert_eq!(&words.join(" "), expected);
        }
    }
}
