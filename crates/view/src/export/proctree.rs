//! `--export proctree`: each interval's processes as a tree, each with the CPU time, memory and I/O of its descendants included.

use std::io;

use kymo_base::column::Cells;
use kymo_kernel::subsystem::process::{self, BYTES_OF_IO, PROCESS};
use kymo_query::delta::Numbers;

use super::forest::{self, Placed};
use super::sums::{add_up, addable, sum};
use crate::brief::{HOME, put_note};
use crate::feed::{Interval, Part};
use crate::format::{Note, Show};
use crate::options::Options;
use crate::options::tree::TreeOptions;
use crate::processes::Columns;
use crate::row::{Beside, RowText};
use crate::selection;
use crate::sink::{Sink, To};
use crate::verbose::over_the_last_screen;

/// Head and row behind the ids: the default one, and those of `--procopts i`, `m` and `x`.
const DEFAULT: (&str, &str) = (
    "User     PR S   VSZ   RSS CP  SysT  UsrT Pct  AccuTime  RKB  WKB MajF MinF Command",
    "{user:-8s8} {priority:2s} {state:1s} {vsz:5k4} {rss:5k4} {cpu:2d} {syst:5.2} {usrt:5.2} {pct:3d} {accum:9t} {rkb:4u} {wkb:4u} {majf:4c} {minf:4c} ",
);
const IO: (&str, &str) = (
    "User     S  SysT  UsrT  AccuTime   RKB   WKB  RKBC  WKBC  RSys  WSys  Cncl Command",
    "{user:-8s8} {state:1s} {syst:5.2} {usrt:5.2} {accum:9t} {rkb:5u} {wkb:5u} {rkbc:5u} {wkbc:5u} {rsys:5u} {wsys:5u} {cncl:5u} ",
);
const MEMORY: (&str, &str) = (
    "User     S VmSize  VmLck  VmRSS VmData  VmStk  VmExe  VmLib MajF MinF Command",
    "{user:-8s8} {state:1s} {vsz:6k} {locked:6k} {rss:6k} {data:6k} {stack:6k} {text:6k} {lib:6k} {majf:4c} {minf:4c} ",
);
const SWITCHES: (&str, &str) = (
    "User     PR S   VSZ   RSS CP  SysT  UsrT Pct  AccuTime  RKB  WKB VCtx NCtx MajF MinF Command",
    "{user:-8s8} {priority:2s} {state:1s} {vsz:5k4} {rss:5k4} {cpu:2d} {syst:5.2} {usrt:5.2} {pct:3d} {accum:9t} {rkb:4u} {wkb:4u} {vctx:4u} {nctx:4u} {majf:4c} {minf:4c} ",
);

/// State of the format.
pub(crate) struct ProcTree {
    settings: TreeOptions,
    columns: Columns,
    head: String,
    row: RowText,
    command: RowText,
    chosen: Vec<usize>,
    own: [Vec<u8>; 2],
    out: Vec<u8>,
    scratch: Vec<u8>,
}

impl ProcTree {
    /// Lays out the columns.
    pub(crate) fn new(settings: TreeOptions, options: &Options) -> ProcTree {
        // The row has no room for the start time.
        let columns = options.process.without_start();
        let (head, row) = match columns {
            Columns { io: true, .. } => IO,
            Columns { memory: true, .. } => MEMORY,
            Columns { switches: true, .. } => SWITCHES,
            _ => DEFAULT,
        };
        let (head, row) = columns.adapted(head, row);
        let (_, command) = columns.adapted("", "{program:s}");
        let text = |row: &str| {
            let fields = PROCESS.fields.len();
            RowText::new(row, PROCESS.detail, fields, options.numbers)
        };
        ProcTree {
            head: format!("#  PID{:1$}  PPID {head}\n", "", settings.depth),
            row: text(&row),
            command: text(&command),
            settings,
            columns,
            chosen: Vec::new(),
            own: Default::default(),
            out: Vec::new(),
            scratch: Vec::new(),
        }
    }

    fn put_head(&mut self, interval: &Interval, options: &Options) {
        let settings = self.settings;
        let switch = |is_on: bool| if is_on { "'on'" } else { "'off'" };
        self.out.extend_from_slice(b"Process Tree ");
        interval.local.put_time(&mut self.out);
        if options.milliseconds {
            interval.local.put_milli(&mut self.out);
        }
        let (field, above) = (settings.field.name(), settings.above_kb);
        let mut line = format!(
            " [skip when '{field}'<={above}{} is {} aggr: {} x1024: {} depth {}",
            if above > 0 { "KB" } else { "" },
            switch(settings.skips),
            switch(settings.adds_up),
            switch(settings.in_bytes),
            settings.depth
        );
        if self.columns.threads {
            line += if settings.without_threads {
                " threads: off"
            } else {
                " threads: on"
            };
        }
        line += "]\n";
        self.out.extend_from_slice(line.as_bytes());
        self.out.extend_from_slice(self.head.as_bytes());
    }

    fn put_tree(&mut self, part: &Part, interval: &Interval, options: &Options) {
        let context = interval.context;
        selection::select(part, context, options, &mut self.chosen);
        let cells = |at: usize| part.cells(&part.rows()[at], context, options);
        if self.settings.without_threads {
            self.chosen
                .retain(|&at| !process::is_thread(cells(at).name));
        }
        let of = |at: &usize| {
            let cells = cells(*at);
            let is_process = !process::is_thread(cells.name);
            let id = is_process.then(|| process::pid_of(cells.name) as f64);
            let parent = process::parent_of(&cells);
            (id.map(f64::to_bits), parent.map(f64::to_bits))
        };
        let (ids, parents): (Vec<_>, Vec<_>) = self.chosen.iter().map(of).unzip();
        let order = forest::order(&ids, &parents);
        let chosen = std::mem::take(&mut self.chosen);
        let mut numbers: Vec<Numbers> = order
            .iter()
            .map(|one| addable(&cells(chosen[one.item])))
            .collect();
        if self.settings.adds_up {
            // A process includes its threads already.
            let is_added = |one: &Placed| ids[one.item].is_some();
            add_up(&mut numbers, &order, is_added);
        }
        let most = options.top.map_or(usize::MAX, |top| top.count);
        let mut shown = 0;
        for (one, numbers) in order.iter().zip(&mut numbers) {
            let cells = cells(chosen[one.item]);
            let is_left_out = one.level >= self.settings.depth
                || self.settings.skips && !self.has_enough(&sum(numbers, &cells));
            if is_left_out || shown == most {
                continue;
            }
            shown += 1;
            if self.settings.in_bytes {
                let io = BYTES_OF_IO.iter();
                io.for_each(|&field| numbers.delta[field] *= 1024.0);
            }
            self.put_process(one.level, &sum(numbers, &cells));
        }
        self.chosen = chosen;
    }

    fn has_enough(&self, cells: &Cells) -> bool {
        let field = self.settings.field;
        !field.adds_up() || field.value(cells) > f64::from(self.settings.above_kb)
    }

    fn put_process(&mut self, level: usize, cells: &Cells) {
        let sign = if process::is_thread(cells.name) {
            '+'
        } else {
            ' '
        };
        let id = process::id_of(cells.name);
        let parent = process::parent_of(cells).unwrap_or(0.0);
        let (before, behind) = (" ".repeat(level), " ".repeat(self.settings.depth - level));
        let ids = format!("{before}{id:05}{sign}{behind} {parent:5.0} ");
        self.out.extend_from_slice(ids.as_bytes());
        let beside = Beside::default();
        self.row
            .put(&mut self.out, cells, beside, &mut self.scratch);
        self.out.extend_from_slice(before.as_bytes());
        let command = &mut self.own[1];
        command.clear();
        if self.columns.makes_command() {
            self.columns.put_command(cells, command);
        }
        let beside = Beside {
            own: &self.own,
            ..beside
        };
        self.command
            .put(&mut self.out, cells, beside, &mut self.scratch);
        self.out.push(b'\n');
    }
}

impl Show for ProcTree {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let mut parts = interval.parts.iter();
        let processes = parts.find(|part| part.choice.subsystem.is_of_processes() && part.fresh);
        let Some(part) = processes else {
            return Ok(());
        };
        self.out.clear();
        let stays = options.home || options.watched && options.top.is_some();
        self.out.extend_from_slice(if stays { HOME } else { b"\n" });
        if options.header {
            self.put_head(interval, options);
        }
        if options.heads_only {
            return sink.write(To::Head, &self.out);
        }
        self.put_tree(part, interval, options);
        if stays {
            over_the_last_screen(&mut self.out, &mut self.scratch);
        }
        sink.write(To::Stream, &self.out)
    }

    fn note(&mut self, note: &Note, _: &Options, sink: &mut dyn Sink) -> io::Result<()> {
        self.out.clear();
        put_note(&mut self.out, note);
        sink.write(To::Stream, &self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `RowText` silently skips a place with an unknown column.
    #[test]
    fn every_place_has_its_column() {
        for (head, row) in [DEFAULT, IO, MEMORY, SWITCHES] {
            for place in row.split('{').skip(1) {
                let name = place.split(':').next().unwrap_or_default();
                let is_known = PROCESS.detail.iter().any(|column| column.name == name);
                assert!(is_known, "{name} of {head}");
            }
        }
    }
}
