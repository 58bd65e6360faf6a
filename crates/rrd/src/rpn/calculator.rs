//! A stack machine with the results of rrd_rpncalc, including its mistakes: ROLL rotates values above the stack, and PERCENT
//! may use the value below it. Where rrdtool reads wild memory or crashes, the calculator reports an underflow.

use super::functions::{average, binary, choose, deviation, extreme, median, sort, unary};
use super::{nodes, op};
use crate::UNKNOWN;
use crate::error::Error;
use crate::header::Univals;
use crate::number::to_i32;

/// The value below the stack in rrdtool: the size of its memory block, read as a double.
const BELOW: f64 = f64::from_bits(0x1f51);

/// A stack that keeps popped values, as in rrdtool.
#[derive(Default)]
pub(crate) struct Calculator {
    cells: Vec<f64>,
    top: usize,
    /// Value of NOW.
    pub(crate) now_sec: i64,
}

impl Calculator {
    /// Computes `points[source]`; variables refer to the other points.
    pub(crate) fn run(
        &mut self,
        par: &Univals,
        points: &mut [f64],
        source: usize,
        step: u64,
    ) -> Result<(), Error> {
        // Values of earlier runs must not be visible, as the same updates have to make the same file.
        self.cells.clear();
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
        // Unknown operators are skipped.
        Ok(())
    }

    fn push(&mut self, value: f64) {
        match self.cells.get_mut(self.top) {
            Some(cell) => *cell = value,
            None => self.cells.push(value),
        }
        self.top += 1;
    }

    /// The topmost values, without popping them.
    fn operands<const N: usize>(&self) -> Result<[f64; N], Error> {
        let first = self.top.checked_sub(N).ok_or_else(underflow)?;
        Ok(std::array::from_fn(|i| self.cells[first + i]))
    }

    /// Pops a count and requires this number of values below it. The count may be negative. One that is no int becomes the
    /// least int, which is an error.
    fn pop_count(&mut self) -> Result<i32, Error> {
        let [count] = self.operands()?;
        self.top -= 1;
        let count = to_i32(count);
        if count == i32::MIN || usize::try_from(count).is_ok_and(|count| count > self.top) {
            return Err(underflow());
        }
        Ok(count)
    }

    /// Pops a count for an operator that would run wild in rrdtool with a negative one, which is an underflow here.
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

    /// As in rrdtool, this rotates the values above the top instead of those below, and stores them below.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpn::{Node, definition};

    type Case<'a> = (&'a [(u8, i16)], Result<f64, String>);

    fn run(nodes: &[(u8, i16)]) -> Result<f64, String> {
        let nodes: Vec<Node> = nodes.iter().map(|&(op, val)| Node { op, val }).collect();
        let mut points = [2.5, UNKNOWN, 0.0];
        let mut calculator = Calculator {
            now_sec: 77,
            ..Calculator::default()
        };
        let done = calculator.run(&definition(&nodes), &mut points, 2, 10);
        done.map(|()| points[2]).map_err(|error| error.text)
    }

    /// Cases that the oracle cannot test: a clock, the newer ROUND, operators that create refuses, and crashes of rrdtool.
    #[test]
    fn the_rest_of_the_operators() {
        let (number, variable) = (op::NUMBER, op::VARIABLE);
        let underflow = || Err("RPN stack underflow".to_owned());
        let cases: &[Case] = &[
            (&[(op::NOW, 0)], Ok(77.0)),
            (&[(variable, 0), (op::ROUND, 0)], Ok(3.0)),
            (&[(variable, 0), (200, 0)], Ok(2.5)),
            (&[(op::COUNT, 0)], Ok(3.0)),
            (&[(op::STEPWIDTH, 0)], Ok(10.0)),
            (&[(variable, 9), (op::UN, 0)], Ok(1.0)),
            (&[(variable, -1), (op::UN, 0)], Ok(1.0)),
            (&[(number, 5), (number, -1), (op::REV, 0)], Ok(5.0)),
            (&[(number, 5), (number, -1), (op::SORT, 0)], underflow()),
            (&[(number, 5), (number, -1), (op::SMAX, 0)], underflow()),
            (&[(number, 5), (number, -1), (op::INDEX, 0)], underflow()),
            (&[(op::COPY, 0)], underflow()),
            (
                &[(op::PREV_OTHER, 0)],
                Err("VDEF made it into rpn_calc... aborting".to_owned()),
            ),
            (
                &[(variable, 0), (number, 1), (op::TREND, 0)],
                Err("malformed trend arguments".to_owned()),
            ),
            (&[], Err("RPN final stack size != 1".to_owned())),
        ];
        for (nodes, result) in cases {
            assert_eq!(&run(nodes), result, "{nodes:?}");
        }
    }
}
