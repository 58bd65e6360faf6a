// A tile of a board: the chart of expressions, as a graph, a table or large numbers; and what changes it.
import { createAsked } from './asked.js';
import { FORMS, legendOf, titleOf } from './boards-kept.js';
import { h, text } from './dom.js';
import { metricText, rangeOf, seconds, stepFor, tableOf } from './promql-answer.js';
import { createTable } from './query-table.js';
import { format } from './units.js';

/** Series of a graph, rows of a table, numbers of a stat. */
const LINES = 100;
const ROWS = 200;
const STATS = 12;

/** `id` tells it from others of the board, also where lines are hidden. */
export function createTile(ctx, chart, id) {
  const inner = h('div', { class: 'inner' });
  const note = h('p', { class: 'sub fault', role: 'status', hidden: true });
  const edit = h('div', { class: 'bar edit', hidden: true });
  const element = h('section', { class: chart.wide ? 'tile wide' : 'tile' }, edit, inner, note);
  const tile = { ctx, chart, id, inner, note, element, asked: null, table: null };
  if (chart.queries) begin(tile);
  return {
    element,
    inner,
    edit,
    chart,
    isAsked: Boolean(chart.queries),
    ask: (signal) => ask(tile, signal),
    draw: () => tile.asked?.draw(),
    moments: () => tile.asked?.moments(),
    card: () => tile.asked?.card(),
    fail: (error) => fail(tile, error),
  };
}

function begin(tile) {
  const { ctx, chart, inner } = tile;
  if (chart.form === 'table') {
    tile.table = createTable(ctx);
    tile.table.element.hidden = false;
    inner.replaceChildren(h('h3', {}, titleOf(chart)), tile.table.element);
  } else if (chart.form === 'stat') {
    tile.stats = h('div', { class: 'stats' });
    inner.replaceChildren(h('section', { class: 'panel' }, h('h3', {}, titleOf(chart)), tile.stats));
  } else tile.asked = createAsked(ctx, inner);
}

/** All expressions of the chart, one after the other. */
async function ask(tile, signal) {
  const { ctx, chart } = tile;
  const seen = ctx.view();
  const isRange = Boolean(tile.asked);
  const range = rangeOf(seen, seconds(chart.step ?? '') ?? stepFor(seen.thru - seen.from));
  const time = ctx.state.at ?? (seen.live ? undefined : seen.thru);
  const found = [];
  try {
    for (const { expr: query, legend } of chart.queries) {
      const parameters = isRange
        ? { query, ...range, limit: LINES }
        : { query, limit: ROWS, ...(time === undefined ? {} : { time }) };
      const { data } = await ctx.api.prometheus(isRange ? 'query_range' : 'query', parameters, signal);
      found.push({ data, legend });
    }
    if (signal.aborted) return;
    tile.note.hidden = true;
    if (isRange) drawRange(tile, found, range);
    else drawMoment(tile, found);
  } catch (error) {
    if (!signal.aborted) fail(tile, error);
  }
}

function fail({ note }, error) {
  text(note, error.message);
  note.hidden = false;
}

function drawRange({ asked, chart, id }, found, range) {
  const series = found.flatMap(({ data, legend }) => data.result.map((each) => ({ ...each, legend })));
  const isNamed = found.length > 1 || found.some(({ legend }) => legend);
  const nameOf = ({ legend, metric }) => (legend ? legendOf(legend, metric) : metricText(metric));
  const panel = { id, title: titleOf(chart), unit: chart.unit };
  asked.set(panel, series, range, isNamed ? series.map(nameOf) : undefined);
}

function drawMoment(tile, found) {
  const { table, stats, chart, ctx } = tile;
  if (table) {
    const lists = found.map(({ data }) => data).filter(({ resultType }) => resultType === 'vector');
    const all = { resultType: 'vector', result: lists.flatMap(({ result }) => result) };
    return table.set(lists.length ? tableOf(all) : tableOf(found[0].data));
  }
  const numbers = found.flatMap(({ data: { resultType, result }, legend }) => {
    if (resultType !== 'vector') return [{ label: '', value: result[1] }];
    return result.map(({ metric, value }) => ({
      label: legend ? legendOf(legend, metric) : '',
      metric,
      value: value[1],
    }));
  });
  const labelled = numbers.length > 1;
  stats.replaceChildren(
    ...numbers.slice(0, STATS).map(({ label, metric, value }) => {
      const name = label || (labelled && metric ? metricText(metric) : '');
      const number = Number(value);
      const shown = Number.isFinite(number) ? format(number, chart.unit ?? '', '', ctx.settings) : value;
      return h('div', { class: 'stat' }, h('b', {}, shown), name ? h('span', {}, name) : null);
    }),
  );
  if (!numbers.length) stats.replaceChildren(h('p', { class: 'quiet' }, 'No series fits.'));
}

/** The row that changes a chart; `on`: change(patch), move(by), remove(), open(). */
export function editRow(chart, on) {
  const field = (name, label, more = {}) =>
    h('input', {
      type: 'text',
      value: chart[name] ?? '',
      placeholder: label,
      'aria-label': label,
      onchange: (event) => on.change({ [name]: event.target.value.trim() || undefined }),
      ...more,
    });
  const button = (label, about, run) =>
    h('button', { class: 'icon', title: about, 'aria-label': about, onclick: run }, label);
  const forms = h(
    'select',
    { 'aria-label': 'Form', onchange: (event) => on.change({ form: FORMS[event.target.selectedIndex] }) },
    FORMS.map((form) => h('option', { selected: (chart.form ?? 'graph') === form }, form)),
  );
  return [
    chart.panel ? null : field('title', 'title'),
    chart.queries ? [forms, field('step', 'step', { size: '5' }), field('unit', 'unit', { size: '5' })] : null,
    chart.queries ? h('button', { title: 'Ask it in the tab Query', onclick: () => on.open() }, 'ask') : null,
    button('‹', 'Move it back', () => on.move(-1)),
    button('›', 'Move it forward', () => on.move(1)),
    h(
      'button',
      { 'aria-pressed': String(Boolean(chart.wide)), onclick: () => on.change({ wide: !chart.wide }) },
      'wide',
    ),
    button('×', 'Remove this chart', () => on.remove()),
  ];
}
