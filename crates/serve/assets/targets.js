// The view of targets that the poller asks devices for: devices with their targets, those that do not answer first, or
// all targets in a row; with `target` in the address the graphs of one.
import { h, text } from './dom.js';
import { fillEmpty } from './filling.js';
import { rateText } from './target-units.js';
import { createTarget } from './target.js';
import { ago, span, stamp } from './time.js';
import { counted } from './units.js';

const EVERY_MS = 15000;
/** Graphs of one target, whose rows are of minutes. */
const PAGE_MS = 60000;
/** Numbers that are still being asked for are looked for so soon. */
const SOON_MS = 1500;
const TYPING_MS = 200;
/** Rows that are asked for at a time. With no more targets than these all devices are open. */
const PART = 200;
const DEFAULT_SORT = 'name';
const COLUMNS = [
  { name: 'name', title: 'target' },
  { name: 'title', title: 'title' },
  { name: 'traffic', title: 'in', number: true, help: 'sorts by in and out together' },
  { name: 'traffic', title: 'out', number: true, help: 'sorts by in and out together' },
  { name: 'used', title: 'of MaxBytes', number: true, help: 'the larger of in and out' },
  { name: 'missing', title: 'missing', number: true, help: 'values of the last hour that did not come' },
];
/** Sums of a device: bits, as interfaces are sold. */
const SUM = { scale: 8, factor: 1, kilo: 1000, prefixes: ['', 'k', 'M', 'G', 'T', 'P'], name: 'b/s', whole: false };

export function createTargets(ctx, host) {
  const view = { ctx, host, open: new Map(), shut: new Set(), parts: 1, asked: 0, timer: 0, page: null };
  Object.assign(view, listElements(view));
  host.append(view.list);
  new ResizeObserver(() => view.page?.resize()).observe(host);
  setInterval(() => !host.hidden && !document.hidden && isOld(view) && load(view), EVERY_MS);
  return {
    show: () => load(view),
    refresh: () => load(view),
    rebuild: () => (ctx.state.target ? view.page?.draw() : draw(view)),
    state: (changed) => ['target', 'by', 'flat', 'q'].some((name) => changed.has(name)) && restart(view, changed),
    focusFilter: () => view.input.focus(),
    pictures: () => view.page?.pictures() ?? [],
    csvRows: () => view.page?.csvRows() ?? listRows(view),
  };
}

const isOld = ({ page, drawn }) => !page || performance.now() - drawn > PAGE_MS;

function listElements(view) {
  const { ctx } = view;
  const sub = h('span', { class: 'sub' });
  const note = h('p', { class: 'note', hidden: true });
  const flat = h('button', {
    'aria-pressed': 'false',
    onclick: () => ctx.set({ flat: ctx.state.flat ? undefined : '1' }),
  });
  let typing = 0;
  const input = h('input', {
    type: 'search',
    placeholder: 'search: core1 uplink …',
    'aria-label': 'Search targets',
    spellcheck: 'false',
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => ctx.set({ q: input.value || undefined }), TYPING_MS);
    },
  });
  text(flat, 'all in a row');
  const heads = COLUMNS.map((column) => head(column, () => sortBy(ctx, column)));
  const body = h('tbody', {});
  const table = h('table', { class: 'targets' }, h('thead', {}, h('tr', {}, heads)), body);
  const more = h('button', { class: 'more', hidden: true, onclick: () => showMore(view) });
  const bar = h('header', { class: 'bar' }, h('div', { class: 'when' }, h('h2', {}, 'Targets'), sub), flat, input);
  const scroller = h('div', { class: 'scroller' }, table);
  const none = h('div', { hidden: true });
  const list = h('section', { class: 'panel' }, bar, note, scroller, none, more);
  return { list, scroller, none, sub, note, flat, input, heads, body, more };
}

const head = ({ title, number, help }, onclick) =>
  h('th', { class: number ? 'number' : '', scope: 'col' }, h('button', { onclick, title: help ?? '' }, title));

/** The column's order, then the other way round. */
function sortBy(ctx, { name }) {
  const sort = ctx.state.by ?? DEFAULT_SORT;
  const next = sort === name ? `-${name}` : name;
  ctx.set({ by: next === DEFAULT_SORT ? undefined : next });
}

/** Another question: what was opened and how far is of the old one. */
function restart(view, changed) {
  if (!changed.has('target')) view.parts = 1;
  return load(view);
}

function showMore(view) {
  view.parts += 1;
  load(view);
}

/** Asks for what is to be seen; of answers that cross only the last one counts. */
async function load(view) {
  clearTimeout(view.timer);
  const { ctx } = view;
  const number = ++view.asked;
  const id = ctx.state.target;
  try {
    const answer = id ? await ctx.api.get('targets/graphs', { id }) : await lists(view);
    if (number !== view.asked) return;
    if (id) showPage(view, answer);
    else showList(view, answer);
  } catch (error) {
    if (number !== view.asked) return;
    if (view.page) leave(view);
    view.lists = null;
    view.body.replaceChildren(h('tr', {}, h('td', { colspan: COLUMNS.length, class: 'quiet' }, error.message)));
  }
}

async function lists(view) {
  const { ctx, open, parts } = view;
  const asked = { q: ctx.state.q, sort: ctx.state.by ?? DEFAULT_SORT };
  if (ctx.state.flat) return { flat: await ctx.api.get('targets', { ...asked, limit: Math.min(parts * PART, 1000) }) };
  const devices = await ctx.api.get('targets/devices', asked);
  if (devices.found <= PART) return { devices, all: await ctx.api.get('targets', { ...asked, limit: PART }) };
  const wanted = devices.devices.filter(({ device }) => open.has(device));
  const found = await Promise.all(
    wanted.map(({ device }) => ctx.api.get('targets', { ...asked, device, limit: Math.min(open.get(device), 1000) })),
  );
  return { devices, opened: new Map(wanted.map(({ device }, n) => [device, found[n]])) };
}

function leave(view) {
  view.page?.destroy();
  view.page?.element.remove();
  view.page = null;
  view.list.hidden = false;
}

function showPage(view, answer) {
  const { ctx, page: before } = view;
  const look = (from, thru) => {
    const ids = ['ds0', 'ds1'].map((column) => `@${answer.series}:${column}`);
    const [low, high] = [from, thru].sort((a, b) => a - b);
    ctx.set({ view: 'series', fields: [ids], host: undefined, range: undefined, from: low, thru: high });
  };
  view.page = createTarget(ctx, answer, { back: () => ctx.set({ target: undefined }), range: look });
  // in the place of the one before nothing moves
  if (before) before.element.replaceWith(view.page.element);
  else view.host.append(view.page.element);
  before?.destroy();
  view.list.hidden = true;
  view.drawn = performance.now();
  view.page.draw();
}

function showList(view, answer) {
  if (view.page) leave(view);
  view.lists = answer;
  draw(view);
  const { pending } = answer.flat ?? answer.devices;
  if (pending) view.timer = setTimeout(() => !view.host.hidden && load(view), SOON_MS);
}

function draw(view) {
  const { ctx, lists: shown } = view;
  if (!shown) return;
  if (document.activeElement !== view.input) view.input.value = ctx.state.q ?? '';
  view.flat.setAttribute('aria-pressed', String(Boolean(ctx.state.flat)));
  drawSort(view);
  const head = shown.flat ?? shown.devices;
  text(view.sub, summary(ctx, shown, head));
  view.none.hidden = head.total > 0;
  view.scroller.hidden = !head.total;
  if (!head.total) fillEmpty(view.none, ctx, ['targets']);
  text(view.note, head.problems.join(' · '));
  view.note.hidden = !head.problems.length;
  view.body.replaceChildren(...(shown.flat ? flatRows(view, shown.flat) : deviceRows(view, shown)));
  const more = shown.flat ? shown.flat.found - shown.flat.targets.length : 0;
  view.more.hidden = !more || view.parts * PART >= 1000;
  text(view.more, `show more of ${more}`);
}

function drawSort({ ctx, heads }) {
  const sort = ctx.state.by ?? DEFAULT_SORT;
  heads.forEach((each, n) => {
    const { name, number } = COLUMNS[n];
    if (name !== sort.replace('-', '')) return each.removeAttribute('aria-sort');
    // numbers come largest first
    const down = Boolean(number) !== sort.startsWith('-');
    each.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  });
}

function summary(ctx, { devices }, { total, found, at }) {
  if (!total) return 'none yet';
  const dead = devices?.devices.filter(({ state }) => state === 'dead').length;
  const slow = devices?.devices.filter(({ state }) => state === 'slow').length;
  return [
    found === total ? counted(total, 'target') : `${found} of ${counted(total, 'target')}`,
    devices ? `${devices.devices.length} devices` : '',
    dead ? `${dead} dead` : '',
    slow ? `${slow} slow` : '',
    at ? `as of ${stamp(at, ctx.zone(), ctx.settings.locale)}` : 'rates are being asked for',
  ]
    .filter(Boolean)
    .join(', ');
}

const flatRows = (view, { targets, units }) => targets.map((target) => targetRow(view, target, units));

function deviceRows(view, { devices, all, opened }) {
  return devices.devices.flatMap((device) => {
    const name = device.device;
    const mine = all
      ? { ...all, targets: all.targets.filter((target) => target.device === name) }
      : (opened.get(name) ?? null);
    const isOpen = all ? !view.shut.has(name) : mine !== null;
    const rows = isOpen ? mine.targets.map((target) => targetRow(view, target, mine.units)) : [];
    return [deviceRow(view, device, isOpen, Boolean(all)), ...rows, moreRow(view, device, isOpen, mine)];
  });
}

function moreRow(view, { device, targets }, isOpen, mine) {
  const rest = isOpen ? targets - mine.targets.length : 0;
  if (rest <= 0) return '';
  const next = () => {
    view.open.set(device, view.open.get(device) + PART);
    load(view);
  };
  const button = h('button', { class: 'link', onclick: next }, `show more of ${rest}`);
  return h('tr', {}, h('td', { colspan: COLUMNS.length }, button));
}

function deviceRow(view, device, isOpen, all) {
  const name = device.device;
  const toggle = () => {
    if (all) view.shut[isOpen ? 'add' : 'delete'](name);
    else if (!view.open.delete(name)) view.open.set(name, PART);
    if (all) draw(view);
    else load(view);
  };
  const button = h('button', { class: 'link', 'aria-expanded': String(isOpen), onclick: toggle }, name || '(commands)');
  return h(
    'tr',
    { class: 'group', 'data-state': device.state },
    h('td', { class: 'name' }, button),
    h(
      'td',
      { 'data-tone': device.state === 'dead' || device.state === 'slow' ? 'D' : undefined },
      stateWords(view, device),
    ),
    device.rates.map((rate) => h('td', { class: 'number' }, rate === null ? '–' : rateText(rate, SUM))),
    usedCell(device.used),
    missingCell(device),
  );
}

/** `dead, seen 3 h ago · 12 ms · 2 lost`, and how many targets. */
function stateWords(view, { state, seen, rtt, lost, late, targets }) {
  const now = view.lists.devices.now;
  return [
    state === 'good' || state === 'unknown' ? '' : state,
    seen === null ? '' : `seen ${ago(seen, now)}`,
    rtt === null ? '' : `${rtt < 10 ? rtt.toFixed(1) : Math.round(rtt)} ms`,
    lost ? `${lost} lost` : '',
    late > 1 ? `${span(late)} late` : '',
    counted(targets, 'target'),
  ]
    .filter(Boolean)
    .join(' · ');
}

function targetRow({ ctx }, target, units) {
  const unit = units[target.unit];
  const open = () => ctx.set({ target: target.id });
  const used = target.used.filter((part, n) => part !== null && target.shown[n]);
  const rates = target.rates.map((rate, n) =>
    h('td', { class: 'number' }, target.shown[n] ? rateText(rate, unit) : ''),
  );
  return h(
    'tr',
    { class: 'inner' },
    h('td', { class: 'name' }, h('button', { class: 'link', title: target.id, onclick: open }, target.name)),
    h('td', { class: 'title', title: target.title }, target.title),
    rates,
    usedCell(used.length ? Math.max(...used) : null),
    missingCell(target),
  );
}

function usedCell(used) {
  const cell = h('td', { class: 'number bar' }, used === null ? '–' : `${used.toFixed(1)} %`);
  cell.style.setProperty('--part', `${Math.min(100, used ?? 0).toFixed(1)}%`);
  return cell;
}

function missingCell({ missing, rows }) {
  const shown = missing ? `${missing} of ${rows}` : rows ? '·' : '–';
  return h('td', { class: 'number', 'data-tone': missing ? 'D' : undefined }, shown);
}

/** What is in sight of the list. */
function listRows({ lists: shown }) {
  if (!shown) return null;
  const parts = shown.flat ? [shown.flat] : shown.all ? [shown.all] : [...shown.opened.values()];
  const rows = parts.flatMap(({ targets }) =>
    targets.map(({ id, device, title, rates, used, missing }) => [id, device, title, ...rates, ...used, missing]),
  );
  return [['target', 'device', 'title', 'in', 'out', 'in % of MaxBytes', 'out % of MaxBytes', 'missing'], ...rows];
}
