// Control groups: charts of those that the reader chooses, else of those that use most, and the table they are chosen
// in. Their names are those of users, so that who has no token sees the sums alone.
import { createBoard } from './board.js';
import { h, text } from './dom.js';
import { hold } from './frame.js';
import { createGrid } from './grid.js';
import { groupLines, groupsOf, shortNames, usual } from './group-rows.js';
import { heldFor } from './held.js';
import { GROUPS } from './more-panels.js';
import { lastWins } from './scans.js';
import { clock } from './time.js';
import { counted, format } from './units.js';

const USUAL = 6;
const EVERY_S = 5;
const SORT = '-cpu';
const LOCKED = 'The groups’ names and numbers need a token: the lock above.';

export function createGroups(ctx, host) {
  const held = heldFor(ctx, () => false);
  const board = createBoard(ctx, host, { add: (frame) => hold(frame, held) });
  const view = { ctx, board, rows: null, usual: null, at: 0, sort: SORT, filter: '', drawn: null, problem: '' };
  Object.assign(view, parts(view));
  host.append(h('section', { class: 'panel groups' }, view.bar, view.note, view.grid.element));
  view.load = lastWins((signal, moment) => load(view, signal, moment));
  follow(view);
  return {
    board,
    follow: () => follow(view),
    sample: (sample) => {
      board.sample(sample);
      if (board.frame()) hold(board.frame(), held);
      if (ctx.moment() === null && sample.time >= view.at + EVERY_S) follow(view);
    },
    /** What is chosen has changed. */
    chosen: () => {
      arrange(view);
      draw(view);
    },
    /** Another range or another token: others may use most. */
    refresh: () => {
      view.usual = null;
      follow(view);
    },
  };
}

function parts(view) {
  const filter = h('input', {
    type: 'search',
    placeholder: 'filter: name, path …',
    'aria-label': 'Filter control groups',
    spellcheck: 'false',
    oninput: () => {
      view.filter = filter.value;
      draw(view);
    },
  });
  const arranged = h(
    'select',
    { 'aria-label': 'Arrange control groups', onchange: () => view.ctx.set({ listed: arranged.value || undefined }) },
    h('option', { value: '' }, 'tree'),
    h('option', { value: 'list' }, 'list'),
  );
  const none = h('button', { onclick: () => view.ctx.set({ groups: undefined }) }, 'those that use most');
  const when = h('h2', {}, 'Control groups');
  const sub = h('span', { class: 'sub' });
  return {
    when,
    sub,
    arranged,
    none,
    note: h('p', { class: 'note', hidden: true }),
    bar: h('header', { class: 'bar' }, h('div', { class: 'when' }, when, sub), filter, arranged, none),
    grid: createGrid('Control groups', (column) => sortBy(view, column)),
  };
}

function sortBy(view, column) {
  const first = column.number ? `-${column.name}` : column.name;
  view.sort = view.sort === first ? (column.number ? column.name : `-${column.name}`) : first;
  // what is sorted by is what those that are drawn use most of
  view.usual = null;
  know(view);
  draw(view);
}

function follow(view) {
  if (!view.ctx.hasTexts()) {
    Object.assign(view, { rows: null, problem: LOCKED });
    arrange(view);
    return draw(view);
  }
  view.at = view.ctx.edge ?? 0;
  view.load(view.ctx.moment());
}

async function load(view, signal, moment) {
  try {
    const answer = await view.ctx.api.get('groups', { at: moment ?? 'now' }, signal);
    Object.assign(view, { rows: groupsOf(answer), answered: answer.at, problem: '' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    const none = error.status === 404 && 'No control groups were recorded at this moment.';
    Object.assign(view, { rows: null, problem: none || error.message });
  }
  know(view);
  draw(view);
}

/** Which use most stays as it is while the numbers move: charts that come and go say nothing. */
function know(view) {
  if (view.rows) view.usual ??= usual(view.rows, view.sort, USUAL);
  arrange(view);
}

/** Those that the charts are of; none: the sums of all. */
function names({ ctx, usual }) {
  if (!ctx.hasTexts()) return [];
  return ctx.state.groups?.length ? ctx.state.groups : (usual ?? []);
}

/** Gives the board its charts where they are others than before. */
function arrange(view) {
  const groups = names(view);
  const drawn = JSON.stringify(groups);
  if (drawn === view.drawn) return;
  view.drawn = drawn;
  view.board.setPanels(GROUPS.map((panel) => (groups.length ? ofGroups(panel, groups, view.rows) : panel)));
  view.ctx.subscribe();
}

function ofGroups({ each, ...panel }, groups, rows) {
  const short = shortNames(groups, rows);
  const layers = groups.flatMap((group, n) =>
    each.map(([column, label]) => ({
      id: `cgroups.${column}:${group}`,
      label: [short[n], label].filter(Boolean).join(' '),
      colour: 1,
    })),
  );
  return { ...panel, layers, note: undefined };
}

function draw(view) {
  const { ctx, rows, grid } = view;
  if (document.hidden) return;
  view.note.hidden = !view.problem;
  text(view.note, view.problem);
  view.arranged.value = ctx.state.listed ?? '';
  view.none.hidden = !ctx.state.groups?.length;
  text(
    view.sub,
    rows ? `${clock(view.answered, ctx.zone(), ctx.settings.locale)} · ${counted(rows.length, 'group')}` : '',
  );
  const drawn = new Set(names(view));
  grid.columns(columnsOf(ctx, drawn, rows ?? []));
  const lines = groupLines(rows ?? [], { filter: view.filter, sort: view.sort, listed: Boolean(ctx.state.listed) });
  grid.draw(lines, view.sort, ({ row }) => ctx.toggle('groups', row.group));
}

function columnsOf({ settings }, drawn, rows) {
  const numeric = (name, title, unit, help) => ({
    name,
    title,
    help,
    number: true,
    write: (row) => (row[name] === 0 ? '·' : format(row[name], unit, 'cgroups', settings)),
  });
  const known = (name, title, help) =>
    rows.some((row) => row[name]) ? [{ name, title, help, write: (row) => row[name] ?? '' }] : [];
  return [
    {
      name: 'group',
      title: 'Group',
      help: 'Name of the container, else the path',
      class: 'name',
      write: (row, line) => row.container || line.name,
    },
    { name: 'drawn', title: '', class: 'drawn', write: (row) => (drawn.has(row.group) ? '●' : '') },
    numeric('cpu', 'CPU', '%', 'CPU time, of one CPU'),
    numeric('memory_kb', 'Memory', 'KiB', 'Memory, with that of files'),
    numeric('read_kb', 'Read', 'KiB/s', 'Read from disks'),
    numeric('write_kb', 'Written', 'KiB/s', 'Written to disks'),
    numeric('cpu_some', 'CPU wait', '%', 'Time some task waited for a CPU'),
    numeric('memory_some', 'Memory wait', '%', 'Time some task waited for memory'),
    numeric('io_some', 'I/O wait', '%', 'Time some task waited for I/O'),
    numeric('pids', 'Tasks', 'count', 'Processes and threads'),
    ...known('image', 'Image', 'Image of the container'),
    ...known('namespace', 'Namespace', 'Namespace of the pod'),
  ];
}
