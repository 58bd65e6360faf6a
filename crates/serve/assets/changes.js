// "What changed here": the movers between the minute before and the moment of the table.
import { spoken } from './card.js';
import { h, text } from './dom.js';
import { minuteBefore, movers } from './movers.js';
import { signed } from './processes.js';
import { lastWins } from './scans.js';
import { span } from './time.js';
import { format } from './units.js';

const MINUTE = 60;
const NAMED = 6;
const REST_MS = 150;

export function createChanges(ctx, scans, host) {
  const body = h('div', { class: 'movers', 'aria-live': 'off' });
  const title = h('h2', {}),
    sub = h('span', { class: 'sub' });
  host.append(h('header', { class: 'bar' }, h('div', { class: 'when' }, title, sub)), body);
  const view = { ctx, scans, body, title, sub };
  const load = lastWins((signal, scan) => show(view, scan, signal), REST_MS);
  return { at: load, compare: (cards, frame) => compare(view, cards, frame) };
}

async function show(view, scan, signal) {
  const { ctx, scans, body } = view;
  if (!scan) return body.replaceChildren();
  if (!scan.previous || ctx.state.b !== undefined) return;
  text(view.title, 'What changed here');
  text(view.sub, 'against the minute before');
  try {
    const [minute, old] = await Promise.all([scans.at(scan.from, signal, MINUTE), scans.at(scan.at - MINUTE, signal)]);
    if (ctx.state.b !== undefined) return;
    if (old.at >= scan.at)
      return body.replaceChildren(h('p', { class: 'quiet' }, 'Nothing is known of the minute before.'));
    draw(ctx, body, movers(minuteBefore(minute.rows, old.rows), scan.rows), scan);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    if (ctx.state.b !== undefined) return;
    body.replaceChildren(
      h('p', { class: 'quiet' }, error.status === 404 ? 'Nothing is known of the minute before.' : error.message),
    );
  }
}

function draw(ctx, body, { lists, born, ended }, scan) {
  const parts = lists
    .filter((list) => list.changes.length)
    .map((list) =>
      section(
        list.title,
        list.changes.map((pair) => mover(ctx, list, pair)),
      ),
    );
  const fates = [
    ['Born', born, 'after'],
    ['Ended', ended, 'before'],
  ]
    .filter(([, pairs]) => pairs.length)
    .map(([title, pairs, side]) => fate(ctx, title, pairs, side, scan));
  if (!parts.length && !fates.length)
    parts.push(h('p', { class: 'quiet' }, 'Nothing of note: no process changed much.'));
  body.replaceChildren(...parts, ...fates);
}

const section = (title, items) => h('section', {}, h('h3', {}, title), h('ul', {}, items));

/** A mover is a button: it puts its name into the filter. */
function mover(ctx, { unit }, { row, was, is, change, before, after }) {
  const note = !before ? 'born' : !after ? 'ended' : '';
  const said = (value) => format(value, unit, 'process', ctx.settings);
  return h(
    'li',
    {},
    h(
      'button',
      {
        onclick: () => ctx.set({ filter: row.comm }),
        title: `${row.command ?? row.comm}: ${said(was)} → ${said(is)}`,
      },
      h('span', { class: 'name' }, row.comm),
      h('span', { class: 'pid' }, String(row.pid)),
      note && h('em', { class: note }, note),
      h('b', { class: change > 0 ? 'up' : 'down' }, signed(change, unit, ctx.settings)),
    ),
  );
}

function fate(ctx, title, pairs, side, scan) {
  const items = pairs
    .slice(0, NAMED)
    .map(({ row, [side]: seen }) =>
      h(
        'li',
        {},
        h(
          'button',
          { onclick: () => ctx.set({ filter: row.comm }), title: row.command ?? row.comm },
          h('span', { class: 'name' }, row.comm),
          h('span', { class: 'pid' }, String(row.pid)),
          h(
            'b',
            {},
            side === 'after' && row.start
              ? `${span(scan.at - row.start)} old`
              : format(seen.pct, '%', '', ctx.settings),
          ),
        ),
      ),
    );
  const rest = pairs.length - items.length;
  return section(
    `${title} (${pairs.length})`,
    [...items, rest > 0 ? h('li', { class: 'quiet' }, `and ${rest} more`) : null].filter(Boolean),
  );
}

/** The machine at both pins: every number of the charts, A and B side by side. */
function compare({ ctx, body, title, sub }, cards, frame) {
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
