// Starts the page and holds what all views share: the state in the address, the cursor, the live stream.
import { takeCode } from './api.js';
import { text } from './dom.js';
import { api } from './early.js';
import { createNow } from './now.js';
import { keepSettings, loadSettings, settingsDialog } from './settings.js';
import { parse, write } from './state.js';
import { isStored } from './stored.js';
import { isDark, onTheme, setTheme } from './theme.js';
import { DEFAULT_RANGE, RANGES, between, clock, pan, span, stamp, visible, zoom, zoneOf } from './time.js';

const $ = (id) => document.getElementById(id);
const STATUS_EVERY_MS = 20000;
// samples that a late answer to /series may lack
const RECENT = 90;
const LEAVE_MS = 350;
const ONE_STEP_MS = 400;

const settings = loadSettings();
setTheme(settings.theme);

const ctx = {
  api,
  settings,
  state: parse(location.search),
  status: null,
  cost: null,
  edge: null,
  hover: null,
  recent: [],
  ranges: [],
  zone: () => zoneOf(settings, ctx.status),
  look: () => [isDark(), settings.bytes, settings.bits, ctx.zone()],
  view: () => visible(ctx.state, ctx.edge ?? Date.now() / 1000, ctx.status?.from),
  moment: () => ctx.state.at ?? ctx.hover,
  hasTexts: () => ctx.status?.scopes.includes('texts') ?? false,
  seen: (time) => {
    if (time > (ctx.edge ?? 0) && ctx.status?.mode !== 'file') ctx.edge = time;
  },
  set,
  toggle,
  change,
  hoverAt,
  pick,
  zoomTo,
  panBy,
  zoomBy,
  zoomBack,
  subscribe,
};

// what is not in sight at first is fetched when it is asked for
const MAKERS = {
  now: async () => createNow,
  fields: async () => (await import('./fields.js')).createFields,
  series: async () => (await import('./series.js')).createSeries,
  query: async () => (await import('./query.js')).createQuery,
  boards: async () => (await import('./boards.js')).createBoards,
  hosts: async () => (await import('./hosts.js')).createHosts,
  programs: async () => (await import('./programs.js')).createPrograms,
  postgres: async () => (await import('./postgres.js')).createPostgres,
  targets: async () => (await import('./targets.js')).createTargets,
  events: async () => (await import('./events.js')).createEvents,
  raw: async () => (await import('./raw.js')).createRaw,
};
const views = {};

let told = false;
let stepped = -ONE_STEP_MS;
let cost,
  stream,
  streamed = '';

/** Changes the state, and with it the address; ranges and views are steps that Back undoes. */
function set(patch, { soon = false } = {}) {
  const changed = new Set(
    Object.keys(patch).filter((name) => JSON.stringify(patch[name]) !== JSON.stringify(ctx.state[name])),
  );
  if (!changed.size) return;
  Object.assign(ctx.state, patch);
  const step = ['range', 'from', 'thru', 'view', 'target', 'expr', 'board'].some((name) => changed.has(name));
  // a wheel that turns is one step
  const again = performance.now() - stepped < ONE_STEP_MS;
  if (step) stepped = performance.now();
  history[step && !again ? 'pushState' : 'replaceState'](null, '', location.pathname + write(ctx.state));
  if (soon) changed.add('soon');
  apply(changed);
}

function apply(changed) {
  if (changed.has('view')) showView();
  else current()?.state?.(changed);
  drawHead();
  if (['fields', 'split', 'host', 'groups'].some((name) => changed.has(name))) subscribe();
}

const current = () => views[ctx.state.view ?? 'now'];

/** Puts a word into a list of the state, or takes it out. */
function toggle(list, word) {
  const now = ctx.state[list] ?? [];
  set({ [list]: now.includes(word) ? now.filter((each) => each !== word) : [...now, word] });
}

let leaving = 0;
/** The cursor. Leaving a chart lets it go after a moment, so that crossing to the next chart does not flicker. */
function hoverAt(time) {
  clearTimeout(leaving);
  if (time === null) leaving = setTimeout(() => moveTo(null), LEAVE_MS);
  else moveTo(time);
}

function moveTo(time) {
  if (ctx.hover === time) return;
  ctx.hover = time;
  current()?.moment?.();
  drawHead();
}

function pick(time, shift) {
  const moment = Math.round(time * 10) / 10;
  if (shift && ctx.state.at !== undefined) set({ b: moment });
  else set({ at: moment, b: undefined });
}

const bounds = () => [ctx.edge ?? Date.now() / 1000, ctx.status?.from ?? 0];
const before = [];

function remember() {
  before.push({ range: ctx.state.range, from: ctx.state.from, thru: ctx.state.thru });
  if (before.length > 50) before.shift();
}

function zoomTo(from, thru) {
  remember();
  set(between(from, thru, ...bounds()), { soon: true });
}

function zoomBy(factor, about) {
  remember();
  set(zoom(ctx.view(), factor, about, ...bounds()));
}

function zoomBack() {
  set(before.pop() ?? { range: undefined, from: undefined, thru: undefined }, { soon: true });
}

function panBy(seconds) {
  const view = ctx.view();
  set(pan(view, seconds / (view.thru - view.from), ...bounds()));
}

const act = {
  step(count) {
    const step = current()?.board?.frame()?.step ?? 1;
    const { thru } = ctx.view();
    const grid = Math.round(((ctx.hover ?? ctx.state.at ?? thru) + count * step) / step) * step;
    moment(grid);
  },
  toEnd: (end) => moment(ctx.view()[end]),
  zoom: (factor) => zoomBy(factor, ctx.moment()),
  pan: (part) => panBy(part * (ctx.view().thru - ctx.view().from)),
  range: (n) => set({ range: RANGES[n][0], from: undefined, thru: undefined }, { soon: true }),
  live: () => {
    moveTo(null);
    set({ at: undefined, b: undefined, from: undefined, thru: undefined }, { soon: true });
  },
  pin: () => pick(ctx.hover ?? ctx.edge, false),
  compare: () => pick(ctx.hover ?? ctx.edge, true),
  release: () => {
    moveTo(null);
    set(ctx.state.b !== undefined ? { b: undefined } : { at: undefined });
  },
  filter: () => current()?.focusFilter?.(),
  view: (name) => set({ view: name === 'now' ? undefined : name }),
  theme: () => change({ theme: isDark() ? 'light' : 'dark' }),
  help: async () => (await import('./keys.js')).helpDialog(),
};

/** The keyboard's cursor: it moves what is held, or the free cursor, and brings it into sight. */
function moment(time) {
  const [edge, oldest] = bounds();
  const there = Math.min(Math.max(time, oldest), edge);
  if (ctx.state.at !== undefined && ctx.hover === null) set({ at: Math.round(there * 10) / 10 });
  else moveTo(there);
  const view = ctx.view();
  if (there < view.from) panBy(there - view.from - (view.thru - view.from) / 4);
  else if (there > view.thru) panBy(there - view.thru);
}

function change(patch) {
  Object.assign(settings, patch);
  keepSettings(settings);
  if ('theme' in patch) setTheme(settings.theme);
  else rebuild();
}

function rebuild() {
  for (const view of Object.values(views)) view.rebuild?.();
  cost?.draw();
  drawHead();
}

function drawHead() {
  const view = ctx.view();
  text($('host'), ctx.status?.host ?? '');
  for (const button of $('ranges').children)
    button.setAttribute(
      'aria-pressed',
      String(view.live && String(ctx.state.range ?? DEFAULT_RANGE) === button.dataset.range),
    );
  for (const tab of $('tabs').children)
    tab.setAttribute('aria-current', tab.dataset.view === (ctx.state.view ?? 'now') ? 'page' : 'false');
  const live = view.live && ctx.state.at === undefined;
  const state = ctx.down ? 'down' : live ? 'live' : 'paused';
  $('live').dataset.state = state;
  const { locale } = settings;
  text(
    $('live'),
    {
      live: ctx.status?.mode === 'file' ? 'the end' : 'live',
      paused: ctx.status?.mode === 'file' ? 'to the end' : 'go live',
      down: `no connection since ${ctx.down ? clock(ctx.down, ctx.zone(), locale) : ''}`,
    }[state],
  );
  const [from, thru] = [stamp(view.from, ctx.zone(), locale), clock(view.thru, ctx.zone(), locale)];
  text($('seen'), `${from} – ${thru} (${span(view.thru - view.from)})`);
  $('lock').dataset.open = String(ctx.hasTexts());
  text($('lock'), ctx.hasTexts() ? 'unlocked' : 'locked');
  $('hint').hidden = ctx.hasTexts() || !ctx.status;
}

async function showView() {
  const name = ctx.state.view ?? 'now';
  for (const each of Object.keys(MAKERS)) {
    $(`view-${each}`).hidden = each !== name;
    if (each !== name) views[each]?.hide?.();
  }
  drawHead();
  const known = views[name];
  if (!known) {
    const make = await MAKERS[name]();
    views[name] ??= make(ctx, $(`view-${name}`));
  }
  if (name !== (ctx.state.view ?? 'now')) return;
  views[name].show?.();
  if (name === 'now' && known) known.refresh();
  subscribe();
}

/** Follows the fields of what is seen; the same fields keep the stream that runs. */
async function subscribe() {
  const seen = current()?.fields?.() ?? current()?.board?.fields() ?? [];
  // stored series are not in the stream: a field of this machine moves the charts on
  const own = seen.filter((id) => !isStored(id));
  const fields = own.length || !seen.length ? own : ['cpu.load1'];
  if (!fields.length || fields.join() === streamed) return;
  streamed = fields.join();
  // samples of other fields would be gaps here
  ctx.recent.length = 0;
  stream?.close();
  const wanted = streamed;
  const { follow } = await import('./live.js');
  if (wanted !== streamed) return;
  stream = follow(api, fields, {
    sample: onSample,
    mark: (mark) => current()?.mark?.(mark),
    none: () => drawHead(),
    // samples of the time without connection are in the recording: ask for them
    up: () => {
      const lost = ctx.down;
      ctx.down = null;
      if (lost) current()?.refresh?.();
      drawHead();
    },
    down: () => {
      ctx.down ??= ctx.edge ?? Date.now() / 1000;
      drawHead();
    },
  });
}

function onSample(sample) {
  ctx.seen(sample.time);
  // the status was read before the recording had a beginning
  if (ctx.status && ctx.status.from === null) ctx.status.from = sample.time - sample.elapsed;
  ctx.recent.push(sample);
  if (ctx.recent.length > RECENT) ctx.recent.shift();
  current()?.sample?.(sample);
  if (!document.hidden) drawHead();
}

function heading() {
  const { from, thru } = ctx.view();
  const [zone, { locale }] = [ctx.zone(), settings];
  return `${ctx.status?.host ?? 'kymo'} · ${stamp(from, zone, locale)} – ${clock(thru, zone, locale)}`;
}

const exportName = (kind) => `kymo-${ctx.state.view ?? 'now'}-${Math.round(ctx.view().thru)}.${kind}`;

async function saveCsv() {
  const { csv, csvFile, frameRows } = await import('./csv.js');
  const own = current().csvRows?.();
  if (own) return csvFile(exportName('csv'), csv(own));
  const frame = current().rows?.();
  const { from, thru } = ctx.view();
  if (frame) csvFile(exportName('csv'), csv(frameRows(frame, from, thru)));
}

async function savePng() {
  const { pngFile } = await import('./png.js');
  const pictures =
    current().pictures?.() ?? (current().cards?.() ?? current().board?.cards() ?? []).map((card) => card.picture());
  if (pictures.length) pngFile(exportName('png'), heading(), pictures);
}

function wire() {
  $('ranges').append(...RANGES.map(([range, label], n) => button(label, () => act.range(n), { range: String(range) })));
  $('tabs').addEventListener('click', (event) => event.target.dataset.view && act.view(event.target.dataset.view));
  const clicks = {
    live: act.live,
    back: () => act.pan(-0.5),
    forward: () => act.pan(0.5),
    closer: () => act.zoom(0.5),
    wider: () => act.zoom(2),
    help: act.help,
    theme: act.theme,
    settings: () => settingsDialog(settings, change),
    lock: openLock,
    hint: openLock,
    csv: saveCsv,
    png: savePng,
  };
  for (const [id, action] of Object.entries(clicks)) $(id).addEventListener('click', () => action());
  addEventListener('popstate', () => {
    ctx.state = parse(location.search);
    showView();
    current()?.rebuild?.();
  });
  document.addEventListener('visibilitychange', () => !document.hidden && refreshSeen());
  onTheme(rebuild);
}

function refreshSeen() {
  current()?.board?.draw();
  if (ctx.moment() === null) current()?.refresh?.();
}

function button(label, onclick, data) {
  const element = document.createElement('button');
  element.textContent = label;
  element.addEventListener('click', onclick);
  Object.assign(element.dataset, data);
  return element;
}

async function openLock() {
  const { lockDialog } = await import('./lock.js');
  lockDialog(ctx, accessChanged);
}

/** With another token all is asked anew at once, what waits to be tried again too. */
async function accessChanged() {
  await readStatus();
  views.now?.refresh();
  current()?.show?.();
  cost?.refresh();
  streamed = '';
  subscribe();
}

let statusAsked = 0;

async function readStatus() {
  const number = ++statusAsked;
  try {
    const status = await api.get('status');
    // the answer to a question from before another token
    if (number !== statusAsked) return;
    const first = !ctx.status;
    ctx.status = status;
    // a recording that is only read ends where it ends, whatever the clock says
    if (ctx.status.mode === 'file') ctx.edge = ctx.status.thru;
    else ctx.seen(ctx.status.thru);
    // what was asked for by its own times is the same
    if (first && ctx.status.mode === 'file') current()?.refresh?.(!ctx.view().live);
    document.title = `${ctx.status.host} · kymo`;
  } catch (error) {
    if (number !== statusAsked) return;
    if (error.status === 401 && !told) {
      told = true;
      $('hint').hidden = false;
      openLock();
    }
  }
  cost?.draw();
  drawHead();
}

/** The tab is there once a server publishes or is asked. */
async function lookForPostgres() {
  const tab = $('tabs').querySelector('[data-view=postgres]');
  try {
    if (ctx.state.view !== 'postgres') {
      const matches = ['job=postgres', 'publisher=postgresql'];
      const answers = await Promise.all(matches.map((match) => api.get('stored', { match })));
      if (answers.every(({ series }) => !series.length)) throw new Error('none');
    }
    tab.hidden = false;
  } catch {
    setTimeout(lookForPostgres, STATUS_EVERY_MS);
  }
}

async function start() {
  const code = takeCode(location, history);
  if (code)
    await api.session({ code }).catch((error) => {
      text($('problem'), error.message);
      $('problem').hidden = false;
    });
  const asked = readStatus();
  showView();
  wire();
  // keys and costs can wait until the charts are on their way
  const [{ bindKeys }, { createCost }] = await Promise.all([import('./keys.js'), import('./cost.js'), asked]);
  bindKeys(act);
  cost = createCost(ctx, $('cost'));
  drawHead();
  setInterval(() => !document.hidden && readStatus(), STATUS_EVERY_MS);
  lookForPostgres();
}

start();
