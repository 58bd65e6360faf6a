//! The RPN of a COMPUTE data source, as the header keeps it, and its calculator.
//!
//! Results are rrd_rpncalc's, its slips among them: its order of numbers is none when infinities are in it (so its
//! sort must be the C library's merge sort), ROLL turns what lies above the stack, PERCENT may take what lies below.
//! Where stock reads wild memory or crashes, here it is an underflow.

use crate::UNKNOWN;
use crate::error::Error;
use crate::header::Univals;
use crate::number::to_i32;

/// Nodes that fit into a definition, the end among them.
pub const NODES_MAX: usize = 20;

/// Operators, by the numbers that files have.
pub mod op {
    #![allow(missing_docs)]
    pub const NUMBER: u8 = 0;
    pub const VARIABLE: u8 = 1;
    pub const INF: u8 = 2;
    pub const PREV: u8 = 3;
    pub const NEGINF: u8 = 4;
    pub const UNKN: u8 = 5;
    pub const NOW: u8 = 6;
    pub const TIME: u8 = 7;
    pub const ADD: u8 = 8;
    pub const MOD: u8 = 9;
    pub const SUB: u8 = 10;
    pub const MUL: u8 = 11;
    pub const DIV: u8 = 12;
    pub const SIN: u8 = 13;
    pub const DUP: u8 = 14;
    pub const EXC: u8 = 15;
    pub const POP: u8 = 16;
    pub const COS: u8 = 17;
    pub const LOG: u8 = 18;
    pub const EXP: u8 = 19;
    pub const LT: u8 = 20;
    pub const LE: u8 = 21;
    pub const GT: u8 = 22;
    pub const GE: u8 = 23;
    pub const EQ: u8 = 24;
    pub const IF: u8 = 25;
    pub const MIN: u8 = 26;
    pub const MAX: u8 = 27;
    pub const LIMIT: u8 = 28;
    pub const FLOOR: u8 = 29;
    pub const CEIL: u8 = 30;
    pub const UN: u8 = 31;
    pub const END: u8 = 32;
    pub const LTIME: u8 = 33;
    pub const NE: u8 = 34;
    pub const ISINF: u8 = 35;
    pub const PREV_OTHER: u8 = 36;
    pub const COUNT: u8 = 37;
    pub const ATAN: u8 = 38;
    pub const SQRT: u8 = 39;
    pub const SORT: u8 = 40;
    pub const REV: u8 = 41;
    pub const TREND: u8 = 42;
    pub const TRENDNAN: u8 = 43;
    pub const ATAN2: u8 = 44;
    pub const RAD2DEG: u8 = 45;
    pub const DEG2RAD: u8 = 46;
    pub const PREDICT: u8 = 47;
    pub const PREDICTSIGMA: u8 = 48;
    pub const AVG: u8 = 49;
    pub const ABS: u8 = 50;
    pub const ADDNAN: u8 = 51;
    pub const MINNAN: u8 = 52;
    pub const MAXNAN: u8 = 53;
    pub const MEDIAN: u8 = 54;
    pub const PREDICTPERC: u8 = 55;
    pub const DEPTH: u8 = 56;
    pub const COPY: u8 = 57;
    pub const ROLL: u8 = 58;
    pub const INDEX: u8 = 59;
    pub const STEPWIDTH: u8 = 60;
    pub const NEWDAY: u8 = 61;
    pub const NEWWEEK: u8 = 62;
    pub const NEWMONTH: u8 = 63;
    pub const NEWYEAR: u8 = 64;
    pub const SMIN: u8 = 65;
    pub const SMAX: u8 = 66;
    pub const STDEV: u8 = 67;
    pub const PERCENT: u8 = 68;
    pub const POW: u8 = 69;
    /// Since 1.8; 1.7.2 passes over it.
    pub const ROUND: u8 = 70;
}

/// `rpn_cdefds_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// One of [`op`].
    pub op: u8,
    /// A NUMBER's value; a VARIABLE's or PREV(x)'s data source.
    pub val: i16,
}

/// The nodes of a definition, without the end.
pub fn nodes(par: &Univals) -> impl Iterator<Item = Node> + use<> {
    let par = *par;
    let nodes = (0..NODES_MAX).map(move |i| {
        let [op, _, low, high] = ((par[i / 2] >> (32 * (i % 2))) as u32).to_le_bytes();
        Node {
            op,
            val: i16::from_le_bytes([low, high]),
        }
    });
    nodes.take_while(|node| node.op != op::END)
}

/// A definition of these nodes, 19 at most; the end is put behind them, and zeros.
pub fn definition(nodes: &[Node]) -> Univals {
    let end = Node {
        op: op::END,
        val: 0,
    };
    let mut par = [0; 10];
    for (i, node) in nodes.iter().chain([&end]).take(NODES_MAX).enumerate() {
        let [low, high] = node.val.to_le_bytes();
        let word = u32::from_le_bytes([node.op, 0, low, high]);
        par[i / 2] |= u64::from(word) << (32 * (i % 2));
    }
    par
}

/// What lies below the stack in stock: the size of its memory block, read as a double.
const BELOW: f64 = f64::from_bits(0x1f51);

/// A stack that keeps what was popped, as stock's does.
#[derive(Default)]
pub(crate) struct Calculator {
    cells: Vec<f64>,
    top: usize,
    /// What NOW says.
    pub(crate) now_sec: i64,
}

impl Calculator {
    /// Computes `points[source]`; the others are what variables stand for.
    pub(crate) fn run(
        &mut self,
        par: &Univals,
        points: &mut [f64],
        source: usize,
        step: u64,
    ) -> Result<(), Error> {
        self.top = 0;
        for node in nodes(par) {
            match node.op {
                op::NUMBER => self.push(f64::from(node.val)),
                op::VARIABLE => {
                    let index = usize::try_from(node.val).ok();
                    let point = index.and_then(|index| points.get(index));
                    self.push(point.copied().unwrap_or(UNKNOWN));
                }
                op::PREV_OTHER => {
                    return Err(Error::new("VDEF made it into rpn_calc... aborting"));
                }
                op::PREV if source > 0 => self.push(points[source - 1]),
                op::COUNT => self.push((source + 1) as f64),
                op::STEPWIDTH => self.push(f64::from(step as i32)),
                op => self.operate(op)?,
            }
        }
        if self.top != 1 {
            return Err(Error::new("RPN final stack size != 1"));
        }
        points[source] = self.cells[0];
        Ok(())
    }

    fn operate(&mut self, op: u8) -> Result<(), Error> {
        match op {
            op::INF => self.push(f64::INFINITY),
            op::NEGINF => self.push(f64::NEG_INFINITY),
            op::UNKN | op::PREV => self.push(UNKNOWN),
            op::NOW => self.push(self.now_sec as f64),
            op::TIME => self.push(0.0),
            op::DEPTH => self.push(self.top as f64),
            op::DUP => {
                let [value] = self.operands()?;
                self.push(value);
            }
            op::EXC => {
                let [under, top] = self.operands()?;
                self.cells[self.top - 2..self.top].copy_from_slice(&[top, under]);
            }
            op::POP => {
                self.operands::<1>()?;
                self.top -= 1;
            }
            op::IF | op::LIMIT => {
                let operands = self.operands()?;
                self.top -= 2;
                self.cells[self.top - 1] = choose(op, operands);
            }
            op::SORT | op::REV | op::AVG | op::MEDIAN | op::STDEV | op::SMIN | op::SMAX => {
                self.of_several(op)?;
            }
            op::PERCENT => self.percent()?,
            op::ROLL => self.roll()?,
            op::COPY => self.copy()?,
            op::INDEX => self.index()?,
            op::TREND | op::TRENDNAN => {
                self.operands::<2>()?;
                return Err(Error::new("malformed trend arguments"));
            }
            _ => self.of_one_or_two(op)?,
        }
        Ok(())
    }

    fn of_one_or_two(&mut self, op: u8) -> Result<(), Error> {
        if let Some(function) = unary(op) {
            let [value] = self.operands()?;
            self.cells[self.top - 1] = function(value);
        } else if let Some(function) = binary(op) {
            let [left, right] = self.operands()?;
            self.top -= 1;
            self.cells[self.top - 1] = function(left, right);
        }
        // Anything else is nobody's operator, and passed over.
        Ok(())
    }

    fn push(&mut self, value: f64) {
        match self.cells.get_mut(self.top) {
            Some(cell) => *cell = value,
            None => self.cells.push(value),
        }
        self.top += 1;
    }

    /// The topmost values, left where they are.
    fn operands<const N: usize>(&self) -> Result<[f64; N], Error> {
        let first = self.top.checked_sub(N).ok_or_else(underflow)?;
        Ok(std::array::from_fn(|i| self.cells[first + i]))
    }

    /// Pops a count, and requires so many values below it. It may be negative; what is no int is the least one, and too many.
    fn pop_count(&mut self) -> Result<i32, Error> {
        let [count] = self.operands()?;
        self.top -= 1;
        let count = to_i32(count);
        if count == i32::MIN || usize::try_from(count).is_ok_and(|count| count > self.top) {
            return Err(underflow());
        }
        Ok(count)
    }

    /// Where an operator would run wild in stock, a negative count is an underflow.
    fn pop_natural(&mut self) -> Result<usize, Error> {
        usize::try_from(self.pop_count()?).map_err(|_| underflow())
    }

    fn of_several(&mut self, op: u8) -> Result<(), Error> {
        let count = match (self.pop_count()?, op) {
            (count, op::REV) if count < 0 => return Ok(()),
            (count, op::AVG) => count.max(0),
            (count, _) => count,
        };
        let count = usize::try_from(count).map_err(|_| underflow())?;
        let first = self.top - count;
        let below = first.checked_sub(1).map_or(BELOW, |at| self.cells[at]);
        let values = &mut self.cells[first..self.top];
        let result = match op {
            op::SORT => {
                sort(values);
                return Ok(());
            }
            op::REV => {
                values.reverse();
                return Ok(());
            }
            op::AVG => average(values),
            op::MEDIAN => median(below, values),
            op::STDEV => deviation(values),
            op::SMIN => extreme(values, |element, least| element < least),
            _ => extreme(values, |element, greatest| element > greatest),
        };
        self.top = first;
        self.push(result);
        Ok(())
    }

    fn percent(&mut self) -> Result<(), Error> {
        let [_, percent, count] = self.operands()?;
        self.top -= 2;
        if !(0.0..=100.0).contains(&percent) {
            return Err(Error::new("percentile argument must be between 0 and 100"));
        }
        self.push(count);
        let count = self.pop_natural()?;
        let first = self.top - count;
        sort(&mut self.cells[first..self.top]);
        let nth = to_i32((percent * count as f64 / 100.0).round()) as usize;
        let at = (first + nth).checked_sub(1);
        let value = at.map_or(BELOW, |at| self.cells[at]);
        self.top = first;
        self.push(value);
        Ok(())
    }

    /// Turns the values from the top upwards, instead of downwards, and puts them below: rrdtool's.
    fn roll(&mut self) -> Result<(), Error> {
        let [_, step] = self.operands::<2>()?;
        self.top -= 1;
        let step = i64::from(to_i32(step));
        let base = self.pop_count()?;
        let Ok(count) = usize::try_from(base) else {
            let text = format!("RPN out of memory (allocating {base} objects)");
            return Err(Error::new(text));
        };
        if count == 0 {
            return Ok(());
        }
        let top = self.top - 1;
        let above = |i: usize| self.cells.get(top + i).copied().unwrap_or(0.0);
        let turned: Vec<f64> = (0..count).map(above).collect();
        for i in 0..count {
            let from = (i as i64 + step).rem_euclid(count as i64);
            self.cells[top - i] = turned[from as usize];
        }
        Ok(())
    }

    fn index(&mut self) -> Result<(), Error> {
        let [back] = self.operands()?;
        let back = usize::try_from(to_i32(back)).map_err(|_| underflow())?;
        if back >= self.top {
            return Err(underflow());
        }
        self.cells[self.top - 1] = self.cells[self.top - 1 - back];
        Ok(())
    }

    fn copy(&mut self) -> Result<(), Error> {
        let count = self.pop_natural()?;
        for _ in 0..count {
            self.push(self.cells[self.top - count]);
        }
        Ok(())
    }
}

fn underflow() -> Error {
    Error::new("RPN stack underflow")
}

fn unary(op: u8) -> Option<fn(f64) -> f64> {
    Some(match op {
        op::SIN => f64::sin,
        op::COS => f64::cos,
        op::ATAN => f64::atan,
        op::LOG => f64::ln,
        op::EXP => f64::exp,
        op::SQRT => f64::sqrt,
        op::ABS => f64::abs,
        op::CEIL => f64::ceil,
        op::FLOOR => f64::floor,
        op::ROUND => f64::round,
        op::RAD2DEG => |value| 57.295_779_51 * value,
        op::DEG2RAD => |value| 0.017_453_295_2 * value,
        op::UN => |value| truth(value.is_nan()),
        op::ISINF => |value| truth(value.is_infinite()),
        _ => return None,
    })
}

fn binary(op: u8) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        op::ADD => |a, b| arithmetic(a, b, a + b),
        op::SUB => |a, b| arithmetic(a, b, a - b),
        op::MUL => |a, b| arithmetic(a, b, a * b),
        op::DIV => |a, b| arithmetic(a, b, a / b),
        op::MOD => |a, b| a % b,
        op::POW => f64::powf,
        op::ATAN2 => f64::atan2,
        op::ADDNAN => |a, b| {
            if a.is_nan() {
                b
            } else if b.is_nan() {
                a
            } else {
                arithmetic(a, b, a + b)
            }
        },
        op::LT => |a, b| unknown_of(a, b).unwrap_or(truth(a < b)),
        op::LE => |a, b| unknown_of(a, b).unwrap_or(truth(a <= b)),
        op::GT => |a, b| unknown_of(a, b).unwrap_or(truth(a > b)),
        op::GE => |a, b| unknown_of(a, b).unwrap_or(truth(a >= b)),
        op::EQ => |a, b| unknown_of(a, b).unwrap_or(truth(a == b)),
        op::NE => |a, b| unknown_of(a, b).unwrap_or(truth(a != b)),
        op::MIN => |a, b| unknown_of(a, b).unwrap_or(if a > b { b } else { a }),
        op::MAX => |a, b| unknown_of(a, b).unwrap_or(if a < b { b } else { a }),
        op::MINNAN => |a, b| if a.is_nan() || a > b { b } else { a },
        op::MAXNAN => |a, b| if a.is_nan() || a < b { b } else { a },
        _ => return None,
    })
}

fn choose(op: u8, [first, second, third]: [f64; 3]) -> f64 {
    if op == op::IF {
        let is_false = first.is_nan() || first == 0.0;
        return if is_false { third } else { second };
    }
    let unknown = [first, second, third]
        .into_iter()
        .find(|value| value.is_nan());
    match unknown {
        Some(unknown) => unknown,
        None if first < second || first > third => UNKNOWN,
        None => first,
    }
}

fn truth(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

/// The first of two that is not a number.
fn unknown_of(a: f64, b: f64) -> Option<f64> {
    [a, b].into_iter().find(|value| value.is_nan())
}

/// An instruction's result: which of two NaNs it is, and that a new one has its sign set, is the processor's rule,
/// not the language's.
fn arithmetic(a: f64, b: f64, result: f64) -> f64 {
    if result.is_nan() {
        unknown_of(a, b).unwrap_or(UNKNOWN)
    } else {
        result
    }
}

fn average(values: &[f64]) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values.iter().rev().filter(|value| !value.is_nan()) {
        sum += value;
        count += 1;
    }
    if count > 0 {
        sum / f64::from(count)
    } else {
        UNKNOWN
    }
}

/// Of those that are numbers, swapped to the front first.
fn median(below: f64, values: &mut [f64]) -> f64 {
    let (mut good, mut count) = (0, values.len());
    let mut bad = count.saturating_sub(1);
    while good < bad {
        if values[good].is_nan() {
            values[good] = values[bad];
            bad -= 1;
            count -= 1;
        } else {
            good += 1;
        }
    }
    if values.get(good).is_some_and(|value| value.is_nan()) {
        count -= 1;
    }
    if count == 0 {
        // The mean of two places that are not theirs: of the first, and of what lies below.
        return values
            .first()
            .map_or(UNKNOWN, |&first| unknown_of(below, first).unwrap_or(first));
    }
    sort(&mut values[..count]);
    if count % 2 == 1 {
        values[count / 2]
    } else {
        0.5 * (values[count / 2] + values[count / 2 - 1])
    }
}

fn deviation(values: &[f64]) -> f64 {
    let (mut count, mut mean, mut squares) = (0, 0.0, 0.0);
    for value in values.iter().rev().filter(|value| !value.is_nan()) {
        count += 1;
        let delta = value - mean;
        mean += delta / f64::from(count);
        squares += delta * (value - mean);
    }
    if count < 2 {
        UNKNOWN
    } else {
        (squares / f64::from(count - 1)).sqrt()
    }
}

fn extreme(values: &[f64], beyond: fn(f64, f64) -> bool) -> f64 {
    let mut found = UNKNOWN;
    for &value in values.iter().rev() {
        if found.is_nan() || beyond(value, found) {
            found = value;
        }
    }
    found
}

/// Is `a` after `b`? NaNs come first. An infinity on either side decides, by its own sign: 5 is after infinity,
/// and infinity after 5.
fn is_after(a: f64, b: f64) -> bool {
    if a.is_nan() {
        return false;
    }
    if b.is_nan() {
        return true;
    }
    if a.is_infinite() {
        return a > 0.0;
    }
    if b.is_infinite() {
        return b > 0.0;
    }
    a - b > 0.0
}

/// The C library's merge sort: as the order is not one, the way is the result.
fn sort(values: &mut [f64]) {
    if values.len() < 2 {
        return;
    }
    let (left, right) = values.split_at_mut(values.len() / 2);
    sort(left);
    sort(right);
    let (left, right) = (left.to_vec(), right.to_vec());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    for value in values {
        let from_right = match (left.peek(), right.peek()) {
            (Some(&&a), Some(&&b)) => is_after(a, b),
            (None, _) => true,
            (_, None) => false,
        };
        let next = if from_right {
            right.next()
        } else {
            left.next()
        };
        *value = next.copied().unwrap_or(UNKNOWN);
    }
}
