// "Why?" of a held moment and of a chosen range; else the processes that changed most in the minute before. The server
// finds both.
import { spoken } from './card.js';
import { h, text } from './dom.js';
import { signed } from './processes.js';
import { lastWins } from './scans.js';
import { span } from './time.js';
import { format } from './units.js';
import { against, findings, question } from './why.js';

const NAMED = 6;
const REST_MS = 150;
/**
 * While the page is live, a scan this soon behind the one whose movers are shown changes little.
 * To find them costs the server more than all the rest of the page.
 */
const LIVE_S = 15;

export function createChanges(ctx, api, host) {
  const body = h('div', { class: 'movers', 'aria-live': 'off' });
  const title = h('h2', {}),
    sub = h('span', { class: 'sub' });
  host.append(h('header', { class: 'bar' }, h('div', { class: 'when' }, title, sub)), body);
  /** `shown`: time of the scan whose movers are shown. `answered`: the question whose answer is shown. */
  const view = { ctx, api, body, title, sub, shown: null, answered: null, scan: null };
  const load = lastWins((signal, scan) => show(view, scan, signal), REST_MS);
  const at = (scan) => {
    view.scan = scan;
    load(scan);
  };
  return {
    at,
    again: () => load(view.scan),
    compare: (cards, frame) => compare(view, cards, frame),
    forget: () => {
      view.shown = view.answered = null;
    },
  };
}

async function show(view, scan, signal) {
  const { ctx, api, body } = view;
  const asked = question(ctx);
  if (asked) return why(view, asked, signal);
  view.answered = null;
  if (scan && isShown(view, scan) && ctx.state.b === undefined) return;
  view.shown = null;
  if (!scan) return body.replaceChildren();
  if (!scan.previous || ctx.state.b !== undefined) return;
  text(view.title, 'What changed here');
  text(view.sub, 'against the minute before');
  try {
    const movers = await api.get('movers', { at: scan.at }, signal);
    if (ctx.state.b !== undefined) return;
    draw(ctx, body, movers);
    view.shown = scan.at;
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    if (ctx.state.b !== undefined) return;
    body.replaceChildren(
      h('p', { class: 'quiet' }, error.status === 404 ? 'Nothing is known of the minute before.' : error.message),
    );
  }
}

/** Asks why, unless the answer is shown. */
async function why(view, asked, signal) {
  const { ctx, api, body } = view;
  const key = JSON.stringify(asked);
  if (view.answered === key) return;
  view.shown = null;
  text(view.title, 'Why?');
  text(view.sub, asked.at === undefined ? 'in this range' : 'at this moment');
  try {
    const answer = await api.get('why', asked, signal);
    if (JSON.stringify(question(ctx)) !== key) return;
    text(view.sub, against(ctx, answer));
    body.replaceChildren(...findings(ctx, answer));
    view.answered = key;
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    body.replaceChildren(h('p', { class: 'quiet' }, error.message));
  }
}

function isShown({ ctx, shown }, { at }) {
  if (shown === null) return false;
  return at === shown || (ctx.moment() === null && at > shown && at < shown + LIVE_S);
}

function draw(ctx, body, { at, lists, born, ended }) {
  const parts = lists
    .filter((list) => list.changes.length)
    .map((list) =>
      section(
        list.title,
        list.changes.map((each) => mover(ctx, list, each)),
      ),
    );
  const fates = [
    ['Born', born, ({ start, pct }) => (start ? `${span(at - start)} old` : format(pct, '%', '', ctx.settings))],
    ['Ended', ended, ({ pct }) => format(pct, '%', '', ctx.settings)],
  ]
    .filter(([, { count }]) => count)
    .map(([title, found, note]) => fate(ctx, title, found, note));
  if (!parts.length && !fates.length)
    parts.push(h('p', { class: 'quiet' }, 'Nothing of note: no process changed much.'));
  body.replaceChildren(...parts, ...fates);
}

const section = (title, items) => h('section', {}, h('h3', {}, title), h('ul', {}, items));

/** A mover is a button: it puts its name into the filter. */
function mover(ctx, { unit }, { pid, comm, command, was, is, fate }) {
  const said = (value) => format(value, unit, 'process', ctx.settings);
  return h(
    'li',
    {},
    h(
      'button',
      {
        onclick: () => ctx.set({ filter: comm }),
        title: `${command ?? comm}: ${said(was)} → ${said(is)}`,
      },
      h('span', { class: 'name' }, comm),
      h('span', { class: 'pid' }, String(pid)),
      fate && h('em', { class: fate }, fate),
      h('b', { class: is > was ? 'up' : 'down' }, signed(is - was, unit, ctx.settings)),
    ),
  );
}

function fate(ctx, title, { count, processes }, note) {
  const items = processes
    .slice(0, NAMED)
    .map((process) =>
      h(
        'li',
        {},
        h(
          'button',
          { onclick: () => ctx.set({ filter: process.comm }), title: process.command ?? process.comm },
          h('span', { class: 'name' }, process.comm),
          h('span', { class: 'pid' }, String(process.pid)),
          h('b', {}, note(process)),
        ),
      ),
    );
  const rest = count - items.length;
  return section(
    `${title} (${count})`,
    [...items, rest > 0 ? h('li', { class: 'quiet' }, `and ${rest} more`) : null].filter(Boolean),
  );
}

/** The machine at both pins: every number of the charts, A and B side by side. */
function compare(view, cards, frame) {
  const { ctx, body, title, sub } = view;
  view.shown = view.answered = null;
  text(title, 'The machine at A and B');
  text(sub, 'numbers of the charts above');
  if (!frame) return;
  const said = (each, time) => spoken(each, frame, time, ctx.settings);
  const row = (each) =>
    h(
      'tr',
      {},
      h('td', {}, each.label),
      h('td', { class: 'number' }, said(each, ctx.state.at)),
      h('td', { class: 'number' }, said(each, ctx.state.b)),
    );
  const group = (card) =>
    h(
      'tbody',
      {},
      h(
        'tr',
        { class: 'group' },
        h('td', {}, card.panel.title),
        h('td', { class: 'number' }, 'A'),
        h('td', { class: 'number' }, 'B'),
      ),
      card.layers().map(row),
    );
  body.replaceChildren(h('table', { class: 'small' }, cards.map(group)));
}
