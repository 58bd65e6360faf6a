//! The RPN of a COMPUTE data source in the 80 bytes of the header.

mod calculator;
mod functions;

pub(crate) use calculator::Calculator;

use crate::header::Univals;

/// Most nodes of a definition, including its end.
pub const NODES_MAX: usize = 20;

/// Operators by their numbers in files.
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
    /// Since 1.8; 1.7.2 ignores it.
    pub const ROUND: u8 = 70;
}

/// `rpn_cdefds_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The operator, one of [`op`].
    pub op: u8,
    /// The value of a NUMBER; the data source of a VARIABLE or PREV(x).
    pub val: i16,
}

/// The nodes of a definition, without its end.
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

/// Makes a definition of at most 19 nodes; the end and zeros follow them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_back() {
        let node = |op, val| Node { op, val };
        let mut all = vec![
            node(op::VARIABLE, 3),
            node(op::NUMBER, -32768),
            node(op::ROUND, 0),
        ];
        assert_eq!(nodes(&definition(&all)).collect::<Vec<_>>(), all);
        all.resize(NODES_MAX - 1, node(op::DUP, 0));
        assert_eq!(nodes(&definition(&all)).collect::<Vec<_>>(), all);
        // A damaged file may lack the end.
        assert_eq!(nodes(&[0; 10]).count(), NODES_MAX);
        assert_eq!(
            definition(&[]),
            [u64::from(op::END), 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}
