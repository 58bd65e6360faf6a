// The view of programs: who publishes what it does, what each of them does now, and what it counts.
import { h, text } from './dom.js';
import { fits, flight, idleOf, labelWords, quantity, readPrograms, secretText } from './published.js';
import { span, stamp } from './time.js';

const EVERY_MS = 2000;
const COMMANDS = ['for', 'state', 'command', 'pid', 'commands', 'labels'];
const METRICS = ['metric', 'total', 'per second', '50 %', '90 %', '99 %', 'samples'];

export function createPrograms(ctx, host) {
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
  const bar = h('header', { class: 'bar' }, h('div', { class: 'when' }, h('h2', {}, 'Programs'), sub), input);
  host.append(h('section', { class: 'panel' }, bar, limited), list);
  const view = { ctx, sub, input, limited, list, answer: null };
  setInterval(() => !host.hidden && !document.hidden && load(view), EVERY_MS);
  return {
    show: () => load(view),
    refresh: () => load(view),
    rebuild: () => draw(view),
    focusFilter: () => input.focus(),
  };
}

async function load(view) {
  try {
    view.answer = await view.ctx.api.get('programs');
    draw(view);
  } catch (error) {
    text(view.sub, error.message);
  }
}

function draw(view) {
  const { answer, input, list, limited, sub } = view;
  if (!answer) return;
  const { alive, active, all } = readPrograms(answer);
  text(
    sub,
    all.length
      ? `${alive} publish, ${active} commands in flight`
      : 'no program publishes anything yet: see docs/programs.md',
  );
  text(
    limited,
    answer.limited.map(({ user }) => `user ${user} wants more than a user has: part is left out`).join(' · '),
  );
  limited.hidden = !answer.limited.length;
  const wanted = input.value.toLowerCase();
  list.replaceChildren(...all.filter((each) => fits(each, wanted)).map((each) => publisher(view, each)));
}

function publisher(view, each) {
  const { now } = view.answer;
  const { locale } = view.ctx.settings;
  const begun = each.started === null ? '' : stamp(each.started, view.ctx.zone(), locale);
  const since = each.started === null ? '' : `, for ${span(Math.max(0, now - each.started))}`;
  const life = each.life === 'retired' ? 'all that have ended' : `pid ${each.pid}, ${each.life}${since}`;
  const more = each.refused ? `, ${each.refused} metrics left out` : '';
  const title = h('div', { class: 'when' }, h('h2', {}, each.name), h('span', { class: 'sub' }, `of ${each.user}`));
  return h(
    'section',
    { class: 'panel program', 'data-life': each.life },
    h('header', { class: 'bar' }, title, h('span', { class: 'sub', title: begun }, life + more)),
    each.life === 'retired' ? null : commands(each, now),
    h(
      'div',
      { class: 'scroller' },
      table(
        METRICS,
        1,
        each.metrics.map((metric) => metricRow(metric, locale)),
      ),
    ),
  );
}

/** What works is shown one by one, what waits is counted. */
function commands(each, now) {
  const rows = flight(each.slots).map((slot) => commandRow(slot, now));
  const idle = h('p', { class: 'sub foot' }, idleOf(each));
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
    h('td', {}, String(slot.pid)),
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
