// The view of programs: who publishes what it does, what each of them does now, or did at the moment that is held, and
// what it counts.
import { h, text } from './dom.js';
import { fillEmpty } from './filling.js';
import {
  fits,
  flight,
  idleOf,
  labelWords,
  ownerOf,
  quantity,
  readPrograms,
  secretText,
  waitWords,
} from './published.js';
import { lastWins } from './scans.js';
import { ago, clock, span, stamp } from './time.js';

const EVERY_MS = 2000;
const COMMANDS = ['for', 'state', 'command', 'waits for', 'pid', 'commands', 'labels'];
const METRICS = ['metric', 'total', 'per second', '50 %', '90 %', '99 %', 'samples'];

export function createPrograms(ctx, host) {
  const when = h('h2', {}, 'Programs');
  const sub = h('span', { class: 'sub' });
  const input = h('input', {
    type: 'search',
    placeholder: 'filter',
    'aria-label': 'Filter programs',
    spellcheck: 'false',
    oninput: () => draw(view),
  });
  const limited = h('p', { class: 'sub foot sockets', 'data-tone': 'D', hidden: true });
  const list = h('div', {});
  const bar = h('header', { class: 'bar' }, h('div', { class: 'when' }, when, sub), input);
  const none = h('div', { hidden: true });
  host.append(h('section', { class: 'panel' }, bar, limited, none), list);
  const view = { ctx, when, sub, input, limited, none, list, answer: null, loads: 0 };
  view.load = lastWins((signal) => load(view, signal));
  const isSeen = () => !host.hidden && !document.hidden;
  // what is over does not change, and a server that takes longer would never get to answer
  setInterval(() => isSeen() && ctx.moment() === null && !view.loads && view.load(), EVERY_MS);
  return {
    show: view.load,
    refresh: view.load,
    moment: view.load,
    state: (changed) => changed.has('at') && view.load(),
    rebuild: () => draw(view),
    focusFilter: () => input.focus(),
  };
}

async function load(view, signal) {
  const at = view.ctx.moment();
  view.loads += 1;
  try {
    view.answer = await view.ctx.api.get('programs', { at }, signal);
    draw(view);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    text(view.sub, error.status === 404 ? 'nothing was recorded of programs at this moment' : error.message);
    if (at === null) return;
    // what is known of now would be a lie
    view.answer = null;
    drawTitle(view, at);
    view.list.replaceChildren();
  } finally {
    view.loads -= 1;
  }
}

/** A moment in the past is said, and that it is one. */
function drawTitle({ ctx, when }, at) {
  const { locale } = ctx.settings;
  const far = at !== undefined && (ctx.edge ?? at) - at > 20 * 3600;
  text(when, at === undefined ? 'Programs' : `Programs at ${(far ? stamp : clock)(at, ctx.zone(), locale)}`);
  when.dataset.held = at === undefined ? 'live' : 'held';
}

function draw(view) {
  const { answer, ctx, input, list, limited, sub } = view;
  if (!answer) return;
  const { at, now } = answer;
  const { alive, active, all } = readPrograms(answer);
  const some = `${alive} published, ${active} commands in flight`;
  drawTitle(view, at);
  if (at !== undefined) text(sub, `held · ${ago(now, ctx.edge ?? now)} · ${some}, as the recording has it`);
  else text(sub, all.length ? `${alive} publish, ${active} commands in flight` : 'no program publishes anything yet');
  const isNone = at === undefined && !all.length;
  view.none.hidden = !isNone;
  if (isNone) fillEmpty(view.none, ctx, ['programs', 'postgres']);
  text(
    limited,
    answer.limited.map(({ user }) => `user ${user} wants more than a user has: part is left out`).join(' · '),
  );
  limited.hidden = !answer.limited.length;
  const wanted = input.value.toLowerCase();
  list.replaceChildren(...all.filter((each) => fits(each, wanted)).map((each) => publisher(view, each)));
}

function publisher(view, each) {
  const { at, now } = view.answer;
  const { locale } = view.ctx.settings;
  const begun = each.started === null ? '' : stamp(each.started, view.ctx.zone(), locale);
  const since = each.started === null ? '' : `, for ${span(Math.max(0, now - each.started))}`;
  const life = each.life === 'retired' ? 'all that have ended' : `pid ${each.pid}, ${each.life}${since}`;
  const more = each.refused ? `, ${each.refused} metrics left out` : '';
  const title = h(
    'div',
    { class: 'when' },
    h('h2', {}, each.name),
    h('span', { class: 'sub' }, [labelWords(each.labels ?? {}), ownerOf(each)].filter(Boolean).join(' ')),
  );
  return h(
    'section',
    { class: 'panel program', 'data-life': each.life },
    h('header', { class: 'bar' }, title, h('span', { class: 'sub', title: begun }, life + more)),
    each.life === 'retired' ? null : commands(each, now, at),
    each.metrics.length ? metrics(each, locale) : null,
  );
}

const metrics = (each, locale) =>
  h(
    'div',
    { class: 'scroller' },
    table(
      METRICS,
      1,
      each.metrics.map((metric) => metricRow(metric, locale)),
    ),
  );

/** What works is shown one by one, what waits is counted. */
function commands(each, now, at) {
  const rows = flight(each.slots).map((slot) => commandRow(slot, now));
  const idle = h('p', { class: 'sub foot' }, idleOf(each, at));
  return rows.length ? [h('div', { class: 'scroller' }, table(COMMANDS, 9, rows)), idle] : idle;
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

function commandRow(slot, now) {
  const since = slot.since === null ? '' : `${Math.max(0, now - slot.since).toFixed(1)} s`;
  return h(
    'tr',
    {},
    h('td', {}, since),
    h('td', {}, slot.state),
    h('td', { class: 'wide', title: secretText(slot) }, secretText(slot)),
    h('td', {}, waitWords(slot)),
    h('td', {}, slot.xid ? '' : String(slot.pid)),
    h('td', {}, String(slot.commands)),
    h('td', {}, labelWords(slot.labels)),
  );
}

function metricRow(metric, locale) {
  const { quantiles = {}, samples = '' } = metric;
  const number = (value) => h('td', { class: 'number' }, value);
  const seconds = (name) => number(quantity(quantiles[name] ?? null, metric.unit, locale));
  const labels = labelWords(metric.labels);
  return h(
    'tr',
    {},
    h('td', { class: 'name', title: metric.help }, labels ? `${metric.name} ${labels}` : metric.name),
    number(quantity(metric.value, metric.kind === 'histogram' ? '' : metric.unit, locale)),
    number(quantity(metric.rate, '', locale)),
    ['0.5', '0.9', '0.99'].map(seconds),
    number(metric.rate === null ? '' : String(samples)),
  );
}
