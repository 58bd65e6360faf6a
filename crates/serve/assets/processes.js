// The process table that follows the cursor, and the comparison of two pinned moments.
import { h, text } from './dom.js';
import { createGrid } from './grid.js';
import { compared } from './compared.js';
import { linesOf, matches, order } from './rows.js';
import { lastWins } from './scans.js';
import { ago, clock, span, stamp } from './time.js';
import { format } from './units.js';
import { csv, csvFile } from './csv.js';

const STATES = { R: 'running', S: 'sleeping', D: 'waiting for a disk', Z: 'ended', T: 'stopped', I: 'idle' };
const GROUPS = [
  ['', 'flat'],
  ['tree', 'tree'],
  ['cgroup', 'by cgroup'],
  ['comm', 'by name'],
  ['user', 'by user'],
];
const TEXTS_ONLY = ['cgroup', 'user'];
export const DEFAULT_SORT = '-pct';

export function createProcesses(ctx, scans, host) {
  const view = {
    ctx,
    scans,
    scan: null,
    other: null,
    loads: 0,
    grid: createGrid('Processes', (column) => sortBy(ctx, column)),
  };
  Object.assign(view, toolbar(view));
  host.append(
    view.bar,
    view.note,
    view.grid.element,
    h(
      'p',
      { class: 'sub foot' },
      'Processes that lived only between two scans are not in the table; the CPU’s own graphs have their time.',
    ),
  );
  view.load = lastWins((signal, moment) => load(view, signal, moment));
  return {
    follow: () => follow(view),
    // a server that takes longer than a sample would never get to answer
    sample: (sample) => !view.loads && newer(view, sample) && follow(view),
    draw: () => draw(view),
    scan: () => view.scan,
    focusFilter: () => view.filter.focus(),
    other: () => view.other,
    onScan: (listener) => {
      view.listener = listener;
    },
  };
}

function toolbar(view) {
  const { ctx } = view;
  const when = h('h2', {});
  const sub = h('span', { class: 'sub' });
  const filter = h('input', {
    type: 'search',
    placeholder: 'filter: name, pid …',
    'aria-label': 'Filter processes',
    value: ctx.state.filter ?? '',
    spellcheck: 'false',
    oninput: () => ctx.set({ filter: filter.value || undefined }),
  });
  const group = h(
    'select',
    { 'aria-label': 'Arrange processes', onchange: () => ctx.set({ group: group.value || undefined }) },
    GROUPS.map(([value, label]) => h('option', { value }, label)),
  );
  const file = h('button', { onclick: () => download(view), title: 'The table as CSV' }, 'CSV');
  const size = h('button', { class: 'size', onclick: () => resize(view) });
  const note = h('p', { class: 'note', hidden: true });
  return {
    when,
    sub,
    filter,
    group,
    size,
    note,
    bar: h('header', { class: 'bar' }, h('div', { class: 'when' }, when, sub), filter, group, file, size),
  };
}

const isDocked = ({ settings }) => settings.table === 'dock';

/** The whole table behind the charts, or as much of it as leaves them in sight. */
function resize({ ctx, bar }) {
  ctx.change({ table: isDocked(ctx) ? 'below' : 'dock' });
  if (!isDocked(ctx)) bar.scrollIntoView({ block: 'center' });
}

/** The largest first for numbers, texts in their order; the same column again turns it round. */
function sortBy(ctx, column) {
  const sort = ctx.state.sort ?? DEFAULT_SORT;
  const first = column.number ? `-${column.name}` : column.name;
  ctx.set({ sort: sort === first ? (column.number ? column.name : `-${column.name}`) : first });
}

/** Whether there may be a newer scan than the one that is shown. */
function newer({ ctx, scan }, sample) {
  if (ctx.moment() !== null) return false;
  if (!scan) return true;
  return sample.time >= scan.at + Math.max(ctx.status?.scan_interval ?? 5, scan.at - (scan.previous ?? scan.at));
}

function follow(view) {
  view.load(view.ctx.moment());
}

async function load(view, signal, moment) {
  const { ctx, scans } = view;
  view.loads += 1;
  try {
    const both = ctx.state.at !== undefined && ctx.state.b !== undefined;
    const [scan, other] = await Promise.all([scans.at(moment, signal), both ? scans.at(ctx.state.b, signal) : null]);
    Object.assign(view, { scan, other, problem: '' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    view.scan = view.other = null;
    text(view.when, 'Processes');
    text(view.sub, '');
    view.problem = error.status === 404 ? 'No processes were recorded at this moment.' : error.message;
  } finally {
    view.loads -= 1;
  }
  draw(view);
  view.listener?.(view.scan, view.other);
}

function draw(view) {
  const { ctx, scan } = view;
  if (document.hidden) return;
  if (document.activeElement !== view.filter) view.filter.value = ctx.state.filter ?? '';
  text(view.size, isDocked(ctx) ? '▴ larger' : '▾ always in sight');
  const texts = ctx.hasTexts();
  for (const option of view.group.options) option.disabled = !texts && TEXTS_ONLY.includes(option.value);
  view.group.value = ctx.state.group ?? '';
  // a process that is not in the table may have been there all the same
  const note = view.problem || (scan?.not_recorded && `Not recorded: ${scan.not_recorded}.`) || '';
  view.note.hidden = !note;
  text(view.note, note);
  // an old table below a new moment would be a lie
  if (view.problem) return view.grid.draw([], DEFAULT_SORT);
  if (!scan) return;
  if (view.other) return drawCompared(view);
  drawHead(view, 'Processes', scan);
  const columns = tableColumns(ctx, scan, edgeOf(scan));
  view.grid.columns(columns);
  const sort = ctx.state.sort ?? DEFAULT_SORT;
  const known = columns.some((column) => column.name === sort.replace('-', ''));
  const group = !texts && TEXTS_ONLY.includes(ctx.state.group) ? undefined : ctx.state.group;
  view.lines = linesOf(scan.rows, { filter: ctx.state.filter, sort: known ? sort : DEFAULT_SORT, group });
  view.shownSort = sort;
  view.grid.draw(view.lines, sort);
}

const edgeOf = (scan) => scan.at;

function drawHead(view, title, scan) {
  const { ctx } = view;
  const zone = ctx.zone(),
    { locale } = ctx.settings;
  const far = (ctx.edge ?? scan.at) - scan.at > 20 * 3600;
  text(view.when, `${title} at ${far ? stamp(scan.at, zone, locale) : clock(scan.at, zone, locale)}`);
  const held = ctx.state.at !== undefined ? 'held' : ctx.hover !== null ? 'at the cursor' : 'live';
  const age = held === 'live' ? '' : ` · ${ago(scan.at, ctx.edge ?? scan.at)}`;
  const matching = ctx.state.filter ? `${scan.rows.filter((row) => matches(row, ctx.state.filter)).length} of ` : '';
  text(view.sub, `${held}${age} · ${matching}${scan.total} processes · rates over ${span(scan.elapsed)}`);
  view.when.dataset.held = held;
}

function tableColumns(ctx, scan, now) {
  const has = new Set(scan.columns.map((column) => column.name));
  const { settings } = ctx;
  const numeric = (name, title, unit, help, extra = {}) => ({
    name,
    title,
    unit,
    help,
    number: true,
    write: (row) => quiet(row[name], unit, settings),
    ...extra,
  });
  const most = Math.max(1, ...scan.rows.map((row) => row.rss ?? 0));
  const columns = [
    {
      name: 'comm',
      title: 'Process',
      help: 'The kernel’s name for it',
      class: 'name',
      write: (row, line) => (line.label === undefined ? row.comm : `${line.label} (${line.count})`),
    },
    {
      name: 'pid',
      title: 'PID',
      help: 'Process id',
      number: true,
      write: (row) => (row.pid < 0 ? '' : String(row.pid)),
    },
    numeric('pct', 'CPU', '%', 'CPU time, of one CPU', { class: 'bar', part: (row) => row.pct / 100 }),
    numeric('rss', 'Memory', 'KiB', 'Memory in RAM', { class: 'bar', part: (row) => row.rss / most }),
    numeric('rkb', 'Read', 'KiB/s', 'Read from disks'),
    numeric('wkb', 'Written', 'KiB/s', 'Written to disks'),
    {
      name: 'state',
      title: 'State',
      help: 'R running, S sleeping, D waiting for a disk, Z ended, T stopped, I idle',
      write: (row) => STATES[row.state] ?? row.state ?? '',
      tone: (row) => row.state ?? '',
    },
    { name: 'user', title: 'User', help: 'User name where known', write: (row) => row.user ?? '' },
    { name: 'container', title: 'Container', help: 'Container around it', write: (row) => row.container ?? '' },
    numeric('majf', 'Maj. faults', '1/s', 'Page faults that read'),
    numeric('minf', 'Min. faults', '1/s', 'Page faults that read nothing'),
    numeric('accum', 'CPU time', 's', 'CPU time since birth'),
    numeric('threads', 'Threads', 'count', 'Threads besides the first'),
    {
      name: 'start',
      title: 'Age',
      help: 'Time since it was born',
      number: true,
      write: (row) => (row.start ? span(now - row.start) : ''),
    },
    { name: 'command', title: 'Command', help: 'Command line', class: 'wide', write: (row) => row.command ?? '' },
  ];
  const isUsed = (name) => name !== 'container' || scan.rows.some((row) => row.container);
  return columns.filter((column) => has.has(column.name) && isUsed(column.name));
}

/** A zero is quiet, so that what moves stands out. */
function quiet(value, unit, settings) {
  if (value === undefined) return '';
  return value === 0 ? '·' : format(value, unit, 'process', settings);
}

function drawCompared(view) {
  const { ctx, scan, other } = view;
  const zone = ctx.zone(),
    { locale } = ctx.settings;
  text(view.when, `A ${clock(scan.at, zone, locale)} → B ${clock(other.at, zone, locale)}`);
  text(view.sub, `two moments compared, ${span(Math.abs(other.at - scan.at))} apart · change is B less A`);
  view.when.dataset.held = 'compared';
  const columns = compareColumns(ctx);
  view.grid.columns(columns);
  const sort = columns.some((column) => column.name === ctx.state.sort?.replace('-', '')) ? ctx.state.sort : '-moved';
  const rows = compared(scan.rows, other.rows)
    .filter((row) => matches(row, ctx.state.filter))
    .sort(order(sort));
  view.lines = rows.map((row) => ({ row, depth: 0 }));
  view.grid.draw(view.lines, sort);
}

function compareColumns({ settings }) {
  const plain = (name, title, unit) => ({
    name,
    title,
    unit,
    number: true,
    write: (row) => (row[name] === null ? '–' : quiet(row[name], unit, settings)),
  });
  const delta = (name, title, unit) => ({
    name,
    title,
    unit,
    number: true,
    class: 'delta',
    write: (row) => signed(row[name], unit, settings),
    tone: (row) => (row[name] > 0 ? 'up' : row[name] < 0 ? 'down' : ''),
  });
  return [
    { name: 'comm', title: 'Process', class: 'name', write: (row) => row.comm },
    { name: 'pid', title: 'PID', number: true, write: (row) => String(row.pid) },
    { name: 'fate', title: '', write: (row) => row.fate, tone: (row) => row.fate },
    plain('pct_a', 'CPU A', '%'),
    plain('pct_b', 'CPU B', '%'),
    delta('pct', 'CPU change', '%'),
    plain('rss_a', 'Memory A', 'KiB'),
    plain('rss_b', 'Memory B', 'KiB'),
    delta('rss', 'Memory change', 'KiB'),
    plain('io_a', 'I/O A', 'KiB/s'),
    plain('io_b', 'I/O B', 'KiB/s'),
    delta('io', 'I/O change', 'KiB/s'),
  ];
}

export function signed(value, unit, settings) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '·';
  return `${value > 0 ? '+' : '−'}${format(Math.abs(value), unit, 'process', settings)}`;
}

/** All columns there are, in recorded units, of the rows that are seen. */
function download({ scan, lines, other }) {
  if (!scan || !lines) return;
  const names = other ? Object.keys(lines[0]?.row ?? {}) : scan.columns.map((column) => column.name);
  csvFile(
    `kymo-processes-${Math.round(scan.at)}.csv`,
    csv([names, ...lines.map(({ row }) => names.map((name) => row[name]))]),
  );
}
