// The page of one target: MRTG's four graphs with the numbers below them.
import { createChart } from './chart.js';
import { h, text } from './dom.js';
import { nearMarks, sayMarks } from './near.js';
import { numberText, rateText, relation, seen, ticSteps, ticText, turns } from './target-units.js';
import { inks, isDark } from './theme.js';
import { span, stamp, tickLabel } from './time.js';

const ROWS = { 300: '5 minutes', 1800: '30 minutes', 7200: '2 hours', 86400: 'a day' };
const PERIODS = { day: 'Day', week: 'Week', month: 'Month', year: 'Year' };
const MAX_INK = '#d5280a';

/** The page of what /targets/graphs answered. `on.back()` leaves it, `on.range(from, thru)` looks closer. */
export function createTarget(ctx, answer, on) {
  const cards = answer.graphs.map((graph) => createGraph(ctx, answer, graph, on));
  const element = h(
    'div',
    { class: 'targetpage' },
    h('button', { class: 'link', onclick: on.back }, '‹ all targets'),
    h('h2', {}, answer.title || answer.name),
    h('p', { class: 'sub' }, [answer.device, answer.name].filter(Boolean).join(' · ')),
    answer.problem ? h('p', { class: 'note' }, answer.problem) : null,
    answer.page_top.length ? h('p', { class: 'pagetop' }, answer.page_top.join('\n')) : null,
    h(
      'div',
      { class: 'grid' },
      cards.map((card) => card.element),
    ),
    answer.graphs.length ? legendOf(answer) : h('p', { class: 'hint' }, 'All graphs of this target are suppressed.'),
  );
  return {
    element,
    draw: () => cards.forEach((card) => card.draw()),
    resize: () => cards.forEach((card) => card.resize()),
    destroy: () => cards.forEach((card) => card.destroy()),
    pictures: () => cards.map((card) => card.picture()),
    csvRows: () => csvRows(answer),
  };
}

const has = ({ options }, option) => options.includes(option);
const drawnOf = ({ directions }) => [0, 1].filter((n) => directions[n].drawn);
const listedOf = ({ directions }) => [0, 1].filter((n) => directions[n].name);

function createGraph(ctx, answer, graph, on) {
  const now = h('span', { class: 'sub' });
  const plot = h('div', { class: 'plot', role: 'img', 'aria-label': `${PERIODS[graph.period]} of ${answer.title}` });
  const title = `${PERIODS[graph.period]}`;
  const note = `averages of ${ROWS[graph.step] ?? span(graph.step)}`;
  const element = h(
    'section',
    { class: 'card', 'data-period': graph.period },
    h('header', {}, h('h3', {}, title, h('small', {}, note)), h('span', { class: 'tools' }, now)),
    h('p', { class: 'axis' }, answer.unit.axis),
    plot,
    numbers(ctx, answer, graph),
  );
  const card = { ctx, answer, graph, plot, now, chart: null };
  return {
    element,
    draw: () => draw(card, on),
    resize: () => card.chart?.resize(plot.clientWidth, plot.clientHeight),
    destroy: () => card.chart?.destroy(),
    picture: () => card.chart && { canvas: card.chart.canvas(), title, legend: pictured(answer, graph) },
  };
}

function draw(card, on) {
  const { ctx, answer, graph, plot } = card;
  const { settings } = ctx;
  card.chart?.destroy();
  const zone = ctx.zone();
  const hover = (time) => {
    card.chart.moments({ cursor: time });
    text(card.now, time === null ? '' : said(card, time));
  };
  const nothing = () => {};
  card.chart = createChart(
    plot,
    { width: plot.clientWidth, height: plot.clientHeight },
    { ...planOf(answer, graph), turns: turns(graph.period, graph.from, graph.thru, zone) },
    { zone, label: (time, step) => tickLabel(time, step, zone, settings.locale) },
    { hover, pick: nothing, select: on.range, pan: nothing, zoom: nothing, back: nothing },
  );
  card.chart.draw(table(answer, graph), graph.from, graph.thru, answer.marks);
}

/** Layers from the back: peaks and rates that came in as areas, then lines of those that went out. */
function layersOf(answer, graph) {
  const { paper } = inks();
  const [areaIn, lineOut, peakIn, peakOut, relative] = answer.colours;
  const [ins, outs] = graph.lines;
  const layers = [];
  const drawn = drawnOf(answer);
  if (drawn.includes(0)) {
    if (graph.peaks) layers.push({ colour: peakIn, fill: 1, values: ins.peak });
    layers.push({ colour: areaIn, fill: isDark() ? 0.85 : 1, values: ins.avg });
  }
  if (drawn.includes(1)) {
    if (graph.peaks) layers.push({ colour: seen(peakOut, paper), values: outs.peak });
    layers.push({ colour: seen(lineOut, paper), values: outs.avg });
  }
  if (has(answer, 'dorelpercent'))
    layers.push({ colour: seen(relative, paper), values: relation(ins.avg, outs.avg), scale: '%' });
  return layers;
}

function planOf(answer, graph) {
  const { unit } = answer;
  const logarithmic = has(answer, 'logscale');
  const scales = [
    {
      key: 'y',
      logarithmic,
      increments: ticSteps(unit),
      ticks: (value) => ticText(value, unit),
      range: (low, high) => (logarithmic ? decades(low, high) : [Math.min(low ?? 0, 0), topOf(answer, graph)]),
    },
  ];
  if (has(answer, 'dorelpercent'))
    scales.push({ key: '%', increments: [20, 25, 50], ticks: (value) => `${value}%`, range: () => [0, 100] });
  const layers = layersOf(answer, graph).map((layer) => ({ scale: 'y', width: layer.fill ? 0.5 : 1.6, ...layer }));
  return { layers, scales, rules: rulesOf(answer, graph), leftward: !has(answer, 'growright') };
}

function topOf({ unit }, { top, unscaled }) {
  const most = (top || 1) * unit.scale;
  return unscaled ? most : most * 1.05;
}

/** Whole decades: of a logarithm there is no zero. */
function decades(low, high) {
  const most = 10 ** Math.ceil(Math.log10(Math.max(high ?? 1, 1e-3)));
  const least = 10 ** Math.floor(Math.log10(Math.max(low ?? 1, most / 1e5)));
  return [Math.min(least, most / 10), most];
}

/** MaxBytes, and in the month what 95 % of all rates keep below. */
function rulesOf(answer, graph) {
  const { unit, percentile, max_bytes: most } = answer;
  const drawn = drawnOf(answer);
  const rules = [...new Set(drawn.map((n) => most[n]))]
    .filter(Boolean)
    .map((value) => ({ value: value * unit.scale, colour: MAX_INK, dash: [4, 3] }));
  if (graph.period !== 'month') return rules;
  const known = drawn.filter((n) => percentile.rates[n] !== null);
  const rule = (n) => ({ value: percentile.rates[n] * unit.scale, colour: ruleInk(answer, n), dash: [8, 3, 2, 3] });
  return [...rules, ...known.map(rule)];
}

const ruleInk = ({ colours }, n) => seen(n ? colours[1] : colours[2], inks().paper);

/** The columns that uPlot draws: times in the middle of rows, then a layer each. */
function table(answer, graph) {
  const times = Array.from({ length: graph.count }, (_, n) => graph.first + (n - 0.5) * graph.step);
  const scaled = ({ values, scale }) =>
    scale ? values : values.map((value) => (value === null ? null : value * answer.unit.scale));
  return [times, ...layersOf(answer, graph).map(scaled)];
}

/** The rates of the row at a moment, and what happened to the device about then. */
function said({ ctx, answer, graph }, time) {
  const n = Math.ceil((time - graph.first) / graph.step);
  const end = graph.first + n * graph.step;
  const rates = drawnOf(answer).map(
    (at) => `${nameOf(answer, at)} ${rateText(graph.lines[at].avg[n] ?? null, answer.unit)}`,
  );
  const happened = sayMarks(nearMarks(answer.marks, graph, time));
  return [stamp(end, ctx.zone(), ctx.settings.locale), ...rates, happened].filter(Boolean).join(' · ');
}

const nameOf = ({ directions }, n) => directions[n].name ?? ['In', 'Out'][n];

/** Max, average and current as MRTG's page has them; in the month also what 95 % of all rates keep below. */
function numbers(ctx, answer, graph) {
  const { unit, percentile } = answer;
  const percents = graph.period === 'month' && percentile.rates.some((rate) => rate !== null);
  const write = (rate, n) => numberText(rate, unit, answer.max_bytes[n], has(answer, 'nopercent'));
  const heads = ['', 'Max', 'Average', 'Current', percents ? `${percentile.percent} %` : null];
  const row = (n) => {
    const { max, average, current } = graph.lines[n];
    const cells = [max, average, current, ...(percents ? [percentile.rates[n]] : [])];
    const swatch = h('i', {});
    swatch.style.background = answer.colours[n];
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, swatch, nameOf(answer, n)),
      cells.map((rate) => h('td', { class: 'number' }, write(rate, n))),
    );
  };
  const listed = listedOf(answer);
  return h(
    'div',
    { class: 'below' },
    h(
      'table',
      { class: 'numbers' },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          heads.filter((head) => head !== null).map((head) => h('th', { scope: 'col' }, head)),
        ),
      ),
      h('tbody', {}, listed.map(row), has(answer, 'dorelpercent') ? relativeRow(answer, graph) : null),
    ),
    has(answer, 'avgpeak') ? peaksLine(answer, graph, listed, write) : null,
    percents ? percentileLine(ctx, answer) : null,
  );
}

function relativeRow({ legends }, { lines: [ins, outs] }) {
  const part = (one, other) => (one === null || !other ? '–' : `${Math.min((one / other) * 100, 100).toFixed(1)} %`);
  const cells = ['max', 'average', 'current'].map((name) => part(ins[name], outs[name]));
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, legends[4]),
    cells.map((cell) => h('td', { class: 'number' }, cell)),
  );
}

function peaksLine(answer, { lines }, listed, write) {
  const rates = listed.map((n) => `${nameOf(answer, n)} ${write(lines[n].average_peak, n)}`);
  return h('p', { class: 'sub' }, `Average of the largest 5-minute rates: ${rates.join(', ')}`);
}

/** Says from what the percentile is: it is worth as much as its values. */
function percentileLine(ctx, { percentile }) {
  const { percent, values, from, step } = percentile;
  const { locale } = ctx.settings;
  const rates = step === 300 ? '5-minute rates' : `averages of ${ROWS[step] ?? span(step)}`;
  const less = step > 300 ? ', as rates of 5 minutes do not reach back as far' : '';
  const count = Math.max(...values).toLocaleString(locale);
  const said = `${percent}th percentile of ${count} ${rates} since ${stamp(from, ctx.zone(), locale)}${less}`;
  return h('p', { class: 'sub percentile' }, said);
}

function legendOf(answer) {
  if (has(answer, 'nolegend')) return null;
  const peaks = answer.graphs.some((graph) => graph.peaks);
  const drawn = drawnOf(answer);
  const items = [...drawn, ...(peaks ? drawn.map((n) => n + 2) : []), ...(has(answer, 'dorelpercent') ? [4] : [])];
  return h(
    'ul',
    { class: 'legend' },
    items.map((n) => key(answer.colours[n], answer.legends[n])),
    answer.max_bytes.some(Boolean) ? key(MAX_INK, 'MaxBytes', true) : null,
  );
}

function key(colour, label, dashed) {
  const swatch = h('i', {});
  swatch.style.background = dashed ? `repeating-linear-gradient(90deg, ${colour} 0 4px, transparent 4px 7px)` : colour;
  return h('li', { class: 'key' }, swatch, h('span', {}, label));
}

const pictured = (answer, graph) =>
  drawnOf(answer).map((n) => ({
    colour: answer.colours[n],
    label: nameOf(answer, n),
    value: rateText(graph.lines[n].current, answer.unit),
  }));

function csvRows({ graphs }) {
  const rows = [['period', 'time', 'time (UTC)', 'in', 'out', 'in max', 'out max']];
  for (const { period, first, step, count, lines, peaks } of graphs)
    for (let n = 0; n < count; n++) {
      const time = first + n * step;
      const values = [...lines.map(({ avg }) => avg[n]), ...(peaks ? lines.map(({ peak }) => peak[n]) : [])];
      rows.push([period, time, new Date(time * 1000).toISOString(), ...values]);
    }
  return rows;
}
