// The view of PostgreSQL: what sessions do at the cursor or now, and who holds up whom; what kinds of commands there
// are and how long they take; charts of a server.
import { treeOf } from './blocking.js';
import { createBoard } from './board.js';
import { h, text } from './dom.js';
import { addParts, kindsOf, labelled, panelsOf, serversOf } from './postgres-panels.js';
import { blockersOf, idleOf, labelWords, ownerOf, quantity, secretText } from './published.js';
import { clock } from './time.js';

const EVERY_MS = 2000;
const LIST_MS = 15000;
const REST_MS = 150;
const SESSIONS = ['for', 'state', 'waits for', 'command', 'pid', 'blocked by', 'labels'];
const KINDS = ['kind', 'per second', 'rows per second', '50 %', '90 %', '99 %', 'samples'];

export function createPostgres(ctx, host) {
  const sub = h('span', { class: 'sub' });
  const buttons = h('div', { class: 'buttons', role: 'group', 'aria-label': 'Server' });
  const bar = h('header', { class: 'bar' }, h('div', { class: 'when' }, h('h2', {}, 'PostgreSQL'), sub), buttons);
  const sessions = h('div', { class: 'sessions' });
  const charts = h('div', { class: 'charts' });
  host.append(h('section', { class: 'panel' }, bar), sessions, charts);
  const view = { ctx, host, sub, buttons, sessions, panels: [], all: [], servers: [], publishers: [], answer: null };
  Object.assign(view, { timer: 0, listed: -LIST_MS });
  view.board = createBoard(ctx, charts, { add: (frame) => addParts(frame, view.panels) });
  setInterval(() => !host.hidden && !document.hidden && ctx.moment() === null && load(view), EVERY_MS);
  setInterval(() => !host.hidden && !document.hidden && list(view), LIST_MS);
  return {
    board: view.board,
    show: () => {
      list(view);
      load(view);
      view.board.refresh(true);
    },
    refresh: () => {
      load(view);
      view.board.refresh(true);
    },
    state: (changed) => onState(view, changed),
    moment: () => {
      view.board.moments();
      soon(view);
    },
    sample: (sample) => view.board.sample(sample),
    mark: (mark) => view.board.mark(mark),
    rebuild: () => {
      arrange(view);
      draw(view);
    },
    rows: () => view.board.frame(),
  };
}

function onState(view, changed) {
  if (changed.has('host')) arrange(view);
  else if (['range', 'from', 'thru'].some((name) => changed.has(name))) view.board.refresh(changed.has('soon'));
  else if (changed.has('hide')) view.board.draw();
  if (changed.has('at') || changed.has('b')) {
    view.board.moments();
    soon(view);
  }
}

/** Which series there are; charts change when these do. */
async function list(view) {
  const now = performance.now();
  if (now - view.listed < LIST_MS / 2) return;
  view.listed = now;
  try {
    const matches = ['job=postgres', 'publisher=postgresql'];
    const answers = await Promise.all(matches.map((match) => view.ctx.api.get('stored', { match })));
    view.all = answers.flatMap(labelled);
  } catch (error) {
    return text(view.sub, error.message);
  }
  arrange(view);
}

const chosen = ({ ctx, servers }) => servers.find(({ name }) => name === ctx.state.host) ?? servers[0];

function arrange(view) {
  // which publisher is which server is known of now alone, and stays so
  if (view.answer && view.answer.at === undefined) view.publishers = view.answer.publishers.filter(isServer);
  view.servers = serversOf(view.all, view.publishers);
  const server = chosen(view);
  const panels = panelsOf(view.all, server);
  if (JSON.stringify(panels) === JSON.stringify(view.panels)) return;
  view.panels = panels;
  view.board.setPanels(panels);
  const button = ({ name }) =>
    h('button', { 'aria-pressed': String(name === server.name), onclick: () => view.ctx.set({ host: name }) }, name);
  view.buttons.replaceChildren(...(view.servers.length > 1 ? view.servers.map(button) : []));
}

/** What was in flight at the cursor, once that has rested. */
function soon(view) {
  clearTimeout(view.timer);
  view.timer = setTimeout(() => load(view), REST_MS);
}

async function load(view) {
  const at = view.ctx.moment();
  const asked = (view.asked = {});
  try {
    const answer = await view.ctx.api.get('programs', at === null ? {} : { at: at.toFixed(3) });
    if (asked !== view.asked) return;
    view.answer = answer;
    view.problem = '';
    if (view.all.length) arrange(view);
  } catch (error) {
    if (asked !== view.asked) return;
    view.answer = null;
    view.problem = error.message;
  }
  draw(view);
}

const isServer = ({ name, life }) => name === 'postgresql' && life !== 'retired';

function draw(view) {
  const { ctx, answer, sessions, sub } = view;
  const all = (answer?.publishers ?? []).filter(isServer);
  const slots = all.flatMap((each) => each.slots);
  const active = slots.filter(({ state }) => state === 'active');
  const blocked = slots.filter((slot) => blockersOf(slot).length);
  const when = ctx.moment() === null ? '' : ` at ${clock(answer?.at ?? ctx.moment(), ctx.zone(), ctx.settings.locale)}`;
  const counts = `${active.length} commands in flight, ${blocked.length} blocked${when}`;
  const none = 'no server says what it does: see docs/postgres.md';
  text(sub, view.problem || (all.length ? counts : `${none}${when}`));
  sessions.replaceChildren(...all.flatMap((each) => server(view, each, all.length > 1)));
}

function server(view, each, several) {
  const { answer, ctx } = view;
  const rows = treeOf(each.slots).map((row) => sessionRow(row, answer.at ?? answer.now));
  const kinds = kindsOf(each).map((kind) => kindRow(kind, ctx.settings.locale));
  const { server: name, port } = each.labels ?? {};
  const title = [name && `server ${name}`, port && `port ${port}`].filter(Boolean).join(', ') || `pid ${each.pid}`;
  return [
    h(
      'section',
      { class: 'panel program', 'aria-label': 'Commands in flight' },
      several ? h('header', { class: 'bar' }, h('h3', {}, title), h('span', { class: 'sub' }, ownerOf(each))) : null,
      rows.length ? h('div', { class: 'scroller' }, table(SESSIONS, SESSIONS.length, rows)) : null,
      h('p', { class: 'sub foot' }, idleOf(each, answer.at)),
    ),
    kinds.length
      ? h(
          'section',
          { class: 'panel program', 'aria-label': 'Kinds of commands' },
          h('div', { class: 'scroller' }, table(KINDS, 1, kinds)),
        )
      : null,
  ].filter(Boolean);
}

const table = (heads, numbersFrom, rows) =>
  h(
    'table',
    {},
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        heads.map((head, n) => h('th', { scope: 'col', class: n >= numbersFrom ? 'number' : '' }, head)),
      ),
    ),
    h('tbody', {}, rows),
  );

/** Below whom it waits for. */
function sessionRow({ slot, depth, holds }, now) {
  const since = slot.since === null ? '' : `${Math.max(0, now - slot.since).toFixed(1)} s`;
  const held = holds ? `holds up ${holds}` : '';
  const blockers = blockersOf(slot);
  const command = h(
    'td',
    { class: 'wide', title: secretText(slot) },
    '\u2003'.repeat(depth) + (depth ? '└ ' : ''),
    secretText(slot),
  );
  return h(
    'tr',
    { 'data-depth': String(depth) },
    h('td', {}, since),
    h('td', {}, slot.state),
    h('td', { 'data-tone': blockers.length ? 'D' : undefined }, slot.wait || held),
    command,
    h('td', {}, slot.xid ? '' : String(slot.pid)),
    h('td', {}, blockers.join(', ')),
    h('td', {}, labelWords(slot.labels)),
  );
}

function kindRow({ kind, rate, rows, quantiles, samples }, locale) {
  const number = (value) => h('td', { class: 'number' }, value);
  return h(
    'tr',
    {},
    h('td', { class: 'name' }, kind),
    number(quantity(rate, '', locale)),
    number(quantity(rows, '', locale)),
    ['0.5', '0.9', '0.99'].map((name) => number(quantity(quantiles[name] ?? null, 'seconds', locale))),
    number(String(samples)),
  );
}
