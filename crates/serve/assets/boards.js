// The view of boards: graphs and expressions that were put together under a name. The address has board and range.
import { createBoard } from './board.js';
import { blank, boardOf, moved, nameOf } from './boards-kept.js';
import { createTile, editRow } from './board-tile.js';
import { dialog, h, save, text } from './dom.js';
import { PANELS, panelOf } from './panels.js';

const AGAIN_MS = 15000;
const WAIT_MS = 150;
/** Questions at a time: the server takes few of one asker. */
const AT_ONCE = 2;
/** Charts are asked a little before they are in sight. */
const MARGIN = '200px';

export function createBoards(ctx, host) {
  const view = { ctx, host, list: [], mayKeep: false, board: null, tiles: [], isEdited: false, timer: 0, stop: null };
  Object.assign(view, { round: 0, running: 0, queue: [], kept: Promise.resolve() });
  view.watch = new IntersectionObserver((entries) => seen(view, entries), { rootMargin: MARGIN });
  view.choice = h('select', {
    'aria-label': 'Board',
    onchange: () => ctx.set({ board: view.choice.value || undefined }),
  });
  view.note = h('p', { class: 'note', role: 'alert', hidden: true });
  view.empty = h('div', { class: 'hint empty', hidden: true });
  view.grid = h('div', { class: 'tiles' });
  view.title = h('input', {
    type: 'text',
    'aria-label': 'Title',
    hidden: true,
    onchange: () => view.board && change(view, { title: view.title.value.trim() || view.board.title }),
  });
  const button = (label, about, run) =>
    h('button', { title: about, onclick: () => Promise.resolve(run()).catch((error) => say(view, error)) }, label);
  view.edit = button('edit', 'Arrange the charts of this board', () => setEdited(view, !view.isEdited));
  view.out = button('export', 'This board as a file', () => exported(view));
  view.gone = button('delete', 'Remove this board', () => askRemove(view));
  view.tools = [
    view.edit,
    button('new', 'A board without charts', () => askNew(view)),
    button('import', 'A board of a file, or a dashboard of Grafana', () => view.file.click()),
  ];
  view.file = h('input', {
    type: 'file',
    accept: '.json,application/json',
    'aria-label': 'File of a board',
    hidden: true,
    onchange: () => imported(view).catch((error) => say(view, error)),
  });
  const said = h('p', { class: 'moment', role: 'status', hidden: true });
  // numbers of all fields are one question; the cards go into their tiles
  const cards = h('div', { hidden: true });
  view.fields = createBoard(ctx, cards);
  host.append(
    h('div', { class: 'bar' }, view.choice, view.title, view.tools, view.out, view.gone, view.file),
    view.note,
    view.empty,
    view.grid,
    cards,
    said,
  );
  new ResizeObserver(() => resize(view)).observe(view.grid);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) view.stop?.abort();
    // without a moment that is held, the page itself asks anew
    else if (ctx.moment() !== null) ask(view);
  });
  return faceOf(view);
}

function faceOf(view) {
  return {
    show: () => load(view),
    hide: () => rest(view),
    state: (changed) => onState(view, changed),
    moment: () => moments(view),
    sample: (sample) => view.fields.sample(sample),
    mark: (mark) => view.fields.mark(mark),
    fields: () => view.fields.fields(),
    refresh: () => {
      view.fields.refresh(true);
      ask(view);
    },
    rebuild: () => arrange(view),
    board: view.fields,
    cards: () => cardsOf(view),
    rows: () => view.fields.frame(),
  };
}

const cardsOf = (view) => [...view.fields.cards(), ...view.tiles.map((tile) => tile.card()).filter(Boolean)];

function resize(view) {
  for (const card of cardsOf(view)) card.resize();
}

function onState(view, changed) {
  const has = (...names) => names.some((name) => changed.has(name));
  if (has('board')) {
    view.loading = load(view);
    return;
  }
  if (has('range', 'from', 'thru')) {
    view.fields.refresh(changed.has('soon'));
    clearTimeout(view.timer);
    view.timer = setTimeout(() => ask(view), changed.has('soon') ? 0 : WAIT_MS);
  } else if (has('at')) ask(view);
  if (has('hide')) draw(view);
  if (has('at', 'b')) moments(view);
}

function rest(view) {
  clearTimeout(view.timer);
  view.stop?.abort();
}

function draw(view) {
  view.fields.draw();
  for (const tile of view.tiles) tile.draw();
}

function moments(view) {
  view.fields.moments();
  for (const tile of view.tiles) tile.moments();
}

const say = ({ note }, error) => {
  text(note, error.message);
  note.hidden = false;
};

/** The list of boards, and the one of the address. */
async function load(view) {
  const { ctx } = view;
  try {
    const { boards, may_keep: mayKeep } = await ctx.api.get('boards');
    Object.assign(view, { list: boards, mayKeep });
    const name = ctx.state.board;
    const board = name ? await ctx.api.get(`boards/${name}`) : null;
    if (name !== ctx.state.board) return;
    view.board = board;
    view.note.hidden = true;
  } catch (error) {
    view.board = null;
    say(view, error);
  }
  head(view);
  arrange(view);
}

function head(view) {
  const { ctx, board, list, choice, mayKeep } = view;
  choice.replaceChildren(
    h('option', { value: '' }, list.length ? 'choose a board' : 'no boards yet'),
    ...list.map(({ name, title }) => h('option', { value: name, selected: name === ctx.state.board }, title || name)),
  );
  for (const tool of view.tools) tool.hidden = !mayKeep;
  view.edit.hidden = !mayKeep || !board;
  view.gone.hidden = !mayKeep || !board;
  view.out.hidden = !board;
  view.title.hidden = !(board && view.isEdited && mayKeep);
  view.title.value = board?.title ?? '';
  view.edit.setAttribute('aria-pressed', String(view.isEdited));
  view.empty.hidden = Boolean(board?.charts.length);
  if (!view.empty.hidden) fillEmpty(view);
}

function fillEmpty({ empty, board, list, mayKeep, ctx }) {
  const links = list.map(({ name, title }) =>
    h('li', {}, h('button', { class: 'link', onclick: () => ctx.set({ board: name }) }, title || name)),
  );
  const how =
    'The tab Query and each chart have a button that pins them to a board. ' +
    'The button above imports a file: a board, or the JSON of a dashboard of Grafana.';
  empty.replaceChildren(
    h('h3', {}, board ? 'This board has no charts yet' : 'Boards: graphs and expressions put together under a name'),
    h('p', { class: 'quiet' }, mayKeep ? how : 'Boards are kept for who has the token: see the lock.'),
    board ? '' : h('ul', {}, links),
  );
}

function setEdited(view, isEdited) {
  view.isEdited = isEdited;
  head(view);
  for (const tile of view.tiles) tile.edit.hidden = !isEdited;
}

/** Tiles of all charts; those of fields share one question. */
async function arrange(view) {
  const { ctx, board } = view;
  const charts = board?.charts ?? [];
  const { MORE } = charts.some(({ panel }) => panel) ? await import('./more-panels.js') : { MORE: [] };
  if (board !== view.board) return;
  view.tiles = charts.map((chart, n) => createTile(ctx, chart, `tile${n}`));
  view.tiles.forEach((tile, n) => {
    tile.edit.hidden = !view.isEdited;
    tile.edit.append(...editRow(tile.chart, changes(view, n)).flat().filter(Boolean));
  });
  view.grid.replaceChildren(...view.tiles.map((tile) => tile.element));
  view.watch.disconnect();
  for (const { element } of view.tiles) view.watch.observe(element);
  const [panels, places] = [[], []];
  view.tiles.forEach((tile, n) => {
    if (tile.isAsked) return;
    const panel = panelFor(tile.chart, n, [...PANELS, ...MORE]);
    if (!panel) return tile.fail(new Error(`There is no chart ${tile.chart.panel} here.`));
    panels.push(panel);
    places.push(tile.inner);
  });
  view.fields.setPanels(panels, ({ element }, n) => places[n].replaceChildren(element));
  ask(view);
}

function panelFor({ panel, fields, title }, n, known) {
  if (panel) return known.find((each) => each.id === panel);
  const made = panelOf(fields, n);
  return { ...made, id: `tile${n}`, title: title || made.title };
}

/** Asks the expressions in sight, few at a time; again after a while, for a live range that is looked at. */
function ask(view) {
  rest(view);
  if (view.host.hidden || !view.tiles.length) return;
  const stop = (view.stop = new AbortController());
  Object.assign(view, { round: view.round + 1, running: 0, queue: [] });
  if (!document.hidden) for (const tile of view.tiles.filter((each) => each.isSeen)) enqueue(view, tile);
  pump(view, stop);
}

function enqueue(view, tile) {
  if (!tile.isAsked || tile.round === view.round) return;
  tile.round = view.round;
  view.queue.push(tile);
}

function pump(view, stop) {
  const next = () => {
    if (view.stop !== stop || stop.signal.aborted) return;
    view.running -= 1;
    pump(view, stop);
  };
  while (view.running < AT_ONCE && view.queue.length) {
    view.running += 1;
    view.queue.shift().ask(stop.signal).then(next);
  }
  if (view.running || stop.signal.aborted) return;
  clearTimeout(view.timer);
  if (view.ctx.view().live && view.ctx.status?.mode !== 'file') view.timer = setTimeout(() => ask(view), AGAIN_MS);
}

/** A chart that comes into sight is asked then: a board may have a hundred. */
function seen(view, entries) {
  for (const { target, isIntersecting } of entries) {
    const tile = view.tiles.find(({ element }) => element === target);
    if (!tile) continue;
    tile.isSeen = isIntersecting;
    if (isIntersecting) enqueue(view, tile);
  }
  if (view.stop && !view.stop.signal.aborted && !document.hidden) pump(view, view.stop);
}

const changes = (view, n) => ({
  change: (patch) =>
    changeCharts(view, (charts) => charts.map((each, at) => (at === n ? { ...each, ...patch } : each))),
  move: (by) => changeCharts(view, (charts) => moved(charts, n, by)),
  open: () => {
    const [{ expr }] = view.board.charts[n].queries;
    view.ctx.set({ view: 'query', expr });
  },
  remove: () => changeCharts(view, (charts) => charts.filter((_, at) => at !== n)),
});

const changeCharts = (view, changed) => change(view, { charts: changed(view.board.charts) });

/** Changes the board on the page at once, so that the next change begins with it, and keeps it behind those before. */
function change(view, patch) {
  const name = view.ctx.state.board;
  const board = { ...view.board, ...patch };
  view.board = board;
  view.list = view.list.map((each) => (each.name === name ? { ...each, title: board.title } : each));
  head(view);
  arrange(view);
  view.kept = view.kept
    .then(() => view.ctx.api.put(`boards/${name}`, board))
    .catch(async (error) => {
      await load(view);
      say(view, error);
    });
}

/** Keeps another board and shows it. */
async function keep(view, board, name) {
  try {
    await view.ctx.api.put(`boards/${name}`, board);
    view.ctx.set({ board: name });
    await view.loading;
  } catch (error) {
    say(view, error);
  }
}

function askNew(view) {
  const title = h('input', { type: 'text', 'aria-label': 'Title', placeholder: 'title' });
  const make = () => {
    const name = free(view, nameOf(title.value));
    if (!name) return;
    box.close();
    keep(view, blank(title.value.trim()), name);
  };
  title.addEventListener('keydown', (event) => event.key === 'Enter' && make());
  const box = dialog(
    'A new board',
    h('div', { class: 'row' }, title, h('button', { class: 'main', onclick: make }, 'Make')),
  );
}

/** A name that no board has. */
function free({ list }, name) {
  if (!name) return '';
  for (let n = 1; ; n++) {
    const wanted = n === 1 ? name : `${name.slice(0, 60)}-${n}`;
    if (!list.some((each) => each.name === wanted)) return wanted;
  }
}

function askRemove(view) {
  const { board, ctx } = view;
  const remove = async () => {
    box.close();
    await view.kept;
    await ctx.api.remove(`boards/${ctx.state.board}`).catch((error) => say(view, error));
    ctx.set({ board: undefined });
  };
  const box = dialog(
    'Delete a board',
    h('p', {}, `Delete ${board.title || ctx.state.board}, with its ${board.charts.length} charts?`),
    h('div', { class: 'row' }, h('button', { class: 'main', onclick: remove }, 'Delete')),
  );
}

function exported({ ctx, board }) {
  save(new Blob([JSON.stringify(board, null, 2)], { type: 'application/json' }), `${ctx.state.board}.json`);
}

/** A board, or a dashboard of Grafana, of a file. */
async function imported(view) {
  const [file] = view.file.files;
  view.file.value = '';
  if (!file) return;
  const given = JSON.parse(await file.text());
  const title = file.name.replace(/\.json$/i, '');
  const { fromGrafana, isDashboard } = await import('./grafana.js');
  const { board, left } = isDashboard(given) ? fromGrafana(given, title) : { board: boardOf(given), left: [] };
  await keep(view, board, free(view, nameOf(board.title || title) || 'board'));
  if (left.length) say(view, new Error(`Not shown: ${left.join('; ')}`));
}
