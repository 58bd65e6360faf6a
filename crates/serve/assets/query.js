// The view of expressions: a box, and its answer as a graph over the range, or as a table at the moment. The address
// has the expression, the step and the form. A question ends when a newer one begins and when the tab is left; a live
// range is asked for again each 15 seconds while it is looked at.
import { createAsked } from './asked.js';
import { copied } from './copied.js';
import { h, text } from './dom.js';
import { forget, keep, kept } from './expressions.js';
import { blamed, metricText, rangeOf, seconds, stepFor, tableOf } from './promql-answer.js';
import { createBox } from './query-box.js';
import { createTable } from './query-table.js';
import { span } from './time.js';

const AGAIN_S = 15;
const WAIT_MS = 150;
/** Series of a graph, and of a table. */
const LINES = 100;
const ROWS = 1000;

const EXAMPLES = [
  ['sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))', 'CPUs at work, by mode'],
  ['node_load1', 'load'],
  ['1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes', 'memory in use, as a share'],
  ['topk(3, rate(node_disk_read_bytes_total[1m]))', 'bytes a second from the three busiest disks'],
  ['rate(node_network_receive_bytes_total[1m]) * 8', 'bits a second from the network'],
  ['node_filesystem_avail_bytes / node_filesystem_size_bytes < 0.2', 'file systems that are nearly full'],
];

export function createQuery(ctx, host) {
  const view = { ctx, host, answer: null, timer: 0, wait: 0, stop: null };
  view.box = createBox(ctx, { run: (expr) => run(view, expr) });
  view.step = h('input', {
    type: 'text',
    class: 'step',
    size: '6',
    'aria-label': 'Step',
    title: 'Time between two values, such as 15s or 5m; empty: as many as the range needs',
    spellcheck: 'false',
    onchange: () => ctx.set({ step: view.step.value.trim() || undefined }, { soon: true }),
  });
  view.forms = ['graph', 'table'].map((form) =>
    h('button', { onclick: () => ctx.set({ form: form === 'graph' ? undefined : form }, { soon: true }) }, form),
  );
  view.past = h('button', { 'aria-expanded': 'false', onclick: () => showPast(view, view.list.hidden) }, 'history');
  view.pin = h('button', { title: 'Pin this expression to a board', onclick: () => pinned(view) }, 'pin');
  view.list = h('ul', { class: 'past', hidden: true });
  view.said = h('span', { class: 'sub', role: 'status' });
  view.note = h('div', { class: 'note', role: 'alert', hidden: true });
  view.remarks = h('ul', { class: 'sub remarks', hidden: true });
  view.table = createTable(ctx);
  view.charts = h('div', { class: 'asked' });
  view.chart = createAsked(ctx, view.charts);
  view.empty = h('div', { class: 'hint empty' });
  const main = h('button', { class: 'main', onclick: () => run(view, view.box.value()) }, 'Ask');
  const forms = h('div', { class: 'buttons', role: 'group', 'aria-label': 'Form' }, view.forms);
  host.append(
    h('section', { class: 'panel query' }, [
      h('div', { class: 'bar' }, view.box.element, main),
      h(
        'div',
        { class: 'bar' },
        forms,
        h('label', { class: 'sub' }, 'step ', view.step),
        view.past,
        view.pin,
        view.said,
      ),
      view.list,
    ]),
    view.note,
    view.remarks,
    view.empty,
    view.charts,
    view.table.element,
  );
  document.addEventListener('visibilitychange', () => document.hidden && view.stop?.abort());
  return faceOf(view);
}

/** What the rest of the page asks of a view. */
function faceOf(view) {
  return {
    show: () => {
      say(view);
      ask(view);
    },
    hide: () => rest(view),
    state: (changed) => onState(view, changed),
    moment: () => view.chart.moments(),
    fields: () => [],
    refresh: () => ask(view),
    rebuild: () => {
      say(view);
      view.chart.draw();
    },
    focusFilter: () => view.box.focus(),
    cards: () => [view.chart.card()].filter(Boolean),
    board: { frame: () => view.chart.frame(), draw: () => view.chart.draw(), fields: () => [], cards: () => [] },
    csvRows: () => csvRows(view),
  };
}

const isTable = ({ ctx }) => ctx.state.form === 'table';

function onState(view, changed) {
  const has = (...names) => names.some((name) => changed.has(name));
  if (has('expr', 'step', 'form')) {
    say(view);
    ask(view);
  } else if (has('range', 'from', 'thru') || (has('at') && isTable(view))) later(view, changed.has('soon'));
  if (has('hide')) view.chart.draw();
  if (has('at', 'b')) view.chart.moments();
}

/** The same expression again is asked again. */
function run(view, expr) {
  showPast(view, false);
  if (expr === (view.ctx.state.expr ?? '')) ask(view);
  else view.ctx.set({ expr: expr || undefined });
}

/** Stops all that is under way. */
function rest(view) {
  clearTimeout(view.timer);
  clearTimeout(view.wait);
  view.stop?.abort();
  view.box.rest();
}

function later(view, soon) {
  clearTimeout(view.wait);
  if (soon) ask(view);
  else view.wait = setTimeout(() => ask(view), WAIT_MS);
}

/** What the address says, in the box and the buttons. */
function say(view) {
  const { state } = view.ctx;
  view.box.set(state.expr ?? '');
  if (document.activeElement !== view.step) view.step.value = state.step ?? '';
  view.forms.forEach((button, n) => button.setAttribute('aria-pressed', String((n === 1) === isTable(view))));
}

/** The question that the address stands for: path, parameters, and the range. */
function questionOf(view) {
  const { ctx } = view;
  const query = ctx.state.expr;
  if (isTable(view)) {
    const seen = ctx.view();
    // the newest moment is the server's: the clock of this machine may be wrong
    const time = ctx.moment() ?? (seen.live ? undefined : seen.thru);
    return { path: 'query', parameters: { query, limit: ROWS, ...(time === undefined ? {} : { time }) } };
  }
  const seen = ctx.view();
  const step = seconds(ctx.state.step ?? '') ?? stepFor(seen.thru - seen.from);
  const range = rangeOf(seen, step);
  return { path: 'query_range', parameters: { query, ...range, limit: LINES }, range };
}

async function ask(view) {
  const { ctx, host } = view;
  clearTimeout(view.timer);
  clearTimeout(view.wait);
  view.stop?.abort();
  if (host.hidden) return;
  if (!ctx.state.expr) return showEmpty(view);
  const question = questionOf(view);
  const again = () => ctx.view().live && ctx.status?.mode !== 'file';
  const wait_ms = Math.max(AGAIN_S, question.range?.step ?? 0) * 1000;
  if (again()) view.timer = setTimeout(() => ask(view), wait_ms);
  // it is asked when the page is looked at again
  if (document.hidden) return;
  const stop = (view.stop = new AbortController());
  const begun = performance.now();
  view.host.dataset.asking = 'true';
  try {
    const answer = await ctx.api.prometheus(question.path, question.parameters, stop.signal);
    if (stop.signal.aborted) return;
    keep(ctx.state.expr);
    take(view, { ...answer.data, remarks: remarksOf(answer), range: question.range, took: performance.now() - begun });
  } catch (error) {
    if (stop.signal.aborted) return;
    fail(view, error);
  }
  delete view.host.dataset.asking;
}

const remarksOf = ({ warnings = [], infos = [] }) => [...warnings, ...infos];

function take(view, answer) {
  view.answer = answer;
  view.note.hidden = true;
  view.empty.hidden = true;
  sayRemarks(view, answer.remarks);
  const isGraph = Boolean(answer.range);
  view.table.element.hidden = isGraph;
  view.charts.hidden = !isGraph;
  const panel = { id: 'expr', title: view.ctx.state.expr };
  if (isGraph) view.chart.set(panel, answer.result, answer.range);
  else view.table.set(tableOf(answer));
  const { result, resultType, range, took } = answer;
  const isList = resultType === 'vector' || resultType === 'matrix';
  const parts = [
    isList ? `${result.length} series` : resultType,
    range ? `step ${span(range.step)}` : '',
    `${took.toFixed(0)} ms`,
  ];
  text(view.said, parts.filter(Boolean).join(' · '));
}

function sayRemarks({ remarks: list }, remarks) {
  list.replaceChildren(...remarks.map((each) => h('li', {}, each)));
  list.hidden = !remarks.length;
}

/** Why there is no answer; an error of the parser has the line with the place below it. */
function fail(view, error) {
  const { note, ctx } = view;
  view.empty.hidden = true;
  sayRemarks(view, []);
  text(view.said, '');
  const place = blamed(error.message, ctx.state.expr ?? '');
  const isOfTable = /for range query/.test(error.message);
  note.replaceChildren(
    place ? `cannot read the expression: ${place.message}` : error.message,
    place ? h('pre', { class: 'place' }, `${place.line}\n${' '.repeat(place.within)}^`) : '',
    isOfTable ? h('button', { onclick: () => ctx.set({ form: 'table' }) }, 'show it as a table') : '',
  );
  note.hidden = false;
  // an old answer is not the one of this expression
  view.charts.hidden = view.table.element.hidden = true;
}

/** Without an expression: some that have an answer here. */
async function showEmpty(view) {
  view.note.hidden = view.remarks.hidden = true;
  view.charts.hidden = view.table.element.hidden = true;
  view.empty.hidden = false;
  text(view.said, '');
  if (view.empty.childElementCount) return;
  const names = new Set(await view.box.names());
  const fit = EXAMPLES.filter(([expr]) => (expr.match(/node_\w+/g) ?? []).every((name) => names.has(name)));
  const address = `${location.origin}${location.pathname.replace(/[^/]*$/, '')}`;
  view.empty.replaceChildren(
    h('h3', {}, 'Ask in PromQL, over all series that kymo has'),
    fit.length ? h('p', { class: 'quiet' }, 'For example:') : '',
    h(
      'ul',
      { class: 'examples' },
      fit.map(([expr, about]) =>
        h(
          'li',
          {},
          h('button', { class: 'link', onclick: () => run(view, expr) }, h('code', {}, expr)),
          h('span', {}, about),
        ),
      ),
    ),
    h('h3', {}, 'Grafana and other clients of Prometheus take this address'),
    copied(address),
  );
}

/** Expressions that were asked before. */
function showPast(view, isShown) {
  view.list.hidden = !isShown;
  view.past.setAttribute('aria-expanded', String(isShown));
  if (!isShown) return;
  const all = kept();
  const clear = () => {
    forget();
    showPast(view, true);
  };
  view.list.replaceChildren(
    ...all.map((expr) => h('li', {}, h('button', { onclick: () => run(view, expr) }, h('code', {}, expr)))),
    h(
      'li',
      { class: 'quiet' },
      all.length ? h('button', { onclick: clear }, 'forget them all') : 'Nothing was asked in this browser yet.',
    ),
  );
}

/** The expression as a chart of a board. */
async function pinned({ ctx: { state }, ctx }) {
  if (!state.expr) return;
  const { pin } = await import('./pin.js');
  const form = state.form === 'table' ? { form: 'table' } : {};
  pin(ctx, { queries: [{ expr: state.expr }], ...form, ...(state.step ? { step: state.step } : {}) });
}

/** What is seen, for a file: a column a series, or the rows of the table. */
function csvRows({ answer, chart, table }) {
  if (!answer?.range) return answer ? table.rows() : [[]];
  const frame = chart.frame();
  const names = answer.result.map(({ metric }) => metricText(metric));
  const rows = [['time', 'time (UTC)', ...names]];
  for (let n = 0; n < frame.count; n++) {
    const time = frame.first + n * frame.step;
    const values = answer.result.map((_, at) => frame.fields.get(`#${at}`).avg[n]);
    rows.push([time, new Date(time * 1000).toISOString(), ...values]);
  }
  return rows;
}
