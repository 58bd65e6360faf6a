// A card is a chart with its title and a legend that says the numbers at the cursor. It turns a panel and a frame into
// what chart.js draws; it asks the server for nothing.
import { createChart, seriesOf } from './chart.js';
import { h, text } from './dom.js';
import { stack, timeAt, valueAt } from './frame.js';
import { expand, numbers } from './panels.js';
import { isStored, parts } from './stored.js';
import { pen } from './theme.js';
import { clock, tickLabel } from './time.js';
import { format, increments, measure, tick } from './units.js';

export function createCard(panel, ctx, on) {
  const legend = h('div', { class: 'legend' });
  const plot = h('div', { class: 'plot', role: 'img' });
  const tools = h('span', { class: 'tools' });
  const title = h('h3', {}, panel.title, panel.note ? h('small', {}, panel.note) : null);
  const element = h(
    'section',
    { class: 'card', 'data-panel': panel.id, 'aria-label': panel.title },
    h('header', {}, title, tools),
    legend,
    plot,
  );
  const card = { panel, element, tools, plot, legend, title, chart: null, shown: null, items: [], signature: '' };
  return {
    element,
    tools,
    panel,
    draw: (frame, view, size) => draw(card, ctx, on, frame, view, size),
    moments: (given, frame) => say(card, ctx, given, frame),
    resize: () => card.chart?.resize(plot.clientWidth, plot.clientHeight),
    size: () => ({ width: plot.clientWidth, height: plot.clientHeight }),
    picture: () =>
      card.chart && {
        canvas: card.chart.canvas(),
        title: panel.title,
        legend: card.items.map(({ each, value }) => ({
          colour: pen(each.colour).colour,
          label: each.label,
          value: value.textContent,
        })),
      },
    layers: () => card.shown ?? [],
    destroy: () => card.chart?.destroy(),
  };
}

const HELP_LINES = 20;
const hiddenName = (panel, each) => `${panel.id}.${each.label}`;

function draw(card, ctx, on, frame, view, size) {
  const all = moving(expand(card.panel.layers, frame.fields.keys()), card.panel, frame);
  const hidden = new Set(ctx.state.hide ?? []);
  const shown = all.filter((each) => !hidden.has(hiddenName(card.panel, each)));
  const units = shown.map((each) => unitOf(each, frame));
  const signature = JSON.stringify([
    all.map((each) => each.label),
    shown.map((each, n) => [each.label, units[n]]),
    ctx.look(),
  ]);
  if (signature !== card.signature) {
    card.signature = signature;
    rebuild(card, ctx, on, frame, all, shown, size);
  }
  if (!card.chart) return;
  card.chart.draw(table(card, frame), view.from, view.thru, marksOf(card, frame));
}

/** What is known of a field. */
const numbersOf = (frame, id) => (frame.fields.get(id)?.avg ?? []).filter((value) => value !== null);

const MANY = 3;
/** Of many devices those that did something: a machine may have a dozen idle loop devices. */
function moving(all, { layers: asked, known }, frame) {
  const peakOf = ({ id }) => Math.max(...numbersOf(frame, id), -Infinity);
  let layers = known ? all.filter(({ id }) => numbersOf(frame, id).length) : all;
  if (known && !layers.length) layers = all.slice(0, 1);
  // the largest, in the order that they have anyway
  if (known?.most && layers.length > known.most) {
    const least = layers.map(peakOf).sort((a, b) => b - a)[known.most - 1];
    layers = layers.filter((each) => peakOf(each) >= least).slice(0, known.most);
  }
  if (known) return layers.map((each, n) => ({ ...each, colour: n + 1 }));
  if (layers.length <= Math.max(MANY, asked.length) || !asked.every((each) => each.quiet)) return layers;
  const found = layers.filter(({ id }) => {
    const { avg, max } = frame.fields.get(id);
    return (max ?? avg).some((value) => value > 0);
  });
  return (found.length ? found : layers.slice(0, 1)).map((each, n) => ({ ...each, colour: n + 1 }));
}

/** What a host that sends wanted to be heard is on the charts of that host alone. */
function marksOf({ panel }, { marks }) {
  const hosts = new Set(panel.layers.filter(({ id }) => isStored(id)).map(({ id }) => parts(id).host));
  return marks.filter(({ host, device }) => (host ?? device) === undefined || hosts.has(host));
}

const unitOf = (each, frame) => frame.fields.get(each.id)?.unit ?? '';

function rebuild(card, ctx, on, frame, all, shown, size) {
  card.chart?.destroy();
  card.shown = shown;
  card.plan = planOf(card.panel, ctx, frame, shown);
  const zone = ctx.zone();
  card.chart = createChart(
    card.plot,
    size,
    card.plan,
    { zone, label: (time, step) => tickLabel(time, step, zone, ctx.settings.locale) },
    on,
  );
  card.items = all.map((each) => legendItem(card, ctx, each, frame, shown.includes(each)));
  card.legend.replaceChildren(...card.items.map((item) => item.element));
  card.title.title = helpOf(card.panel, shown, frame);
}

/** In words: a line for each of the chart's lines, from the help texts of its fields. */
export function helpOf({ title, note }, layers, frame) {
  const lines = layers.map((each) => {
    const { help, unit } = frame.fields.get(each.id) ?? {};
    const about = [help, unit && `(${unit})`].filter(Boolean).join(' ');
    return each.label && about ? `${each.label}: ${about}` : each.label || about;
  });
  const head = [title, note].filter(Boolean).join(', ');
  return [head, ...new Set(lines)].slice(0, HELP_LINES).join('\n');
}

function legendItem(card, ctx, each, frame, isShown) {
  const value = h('b', {});
  const swatch = h('i', {});
  const { colour, dash } = pen(each.colour);
  swatch.style.background = dash ? `repeating-linear-gradient(90deg, ${colour} 0 3px, transparent 3px 5px)` : colour;
  const field = frame.fields.get(each.id);
  const element = h(
    'button',
    {
      class: 'key',
      'aria-pressed': String(isShown),
      title: field?.help || each.label,
      onclick: () => ctx.toggle('hide', hiddenName(card.panel, each)),
    },
    swatch,
    h('span', {}, each.label),
    value,
  );
  return { each, element, value };
}

/** Scales, one a unit, and pens. */
function planOf(panel, ctx, frame, shown) {
  const scales = [];
  const layers = shown.map((each) => {
    const as = measure(unitOf(each, frame), each.id, ctx.settings);
    const key = panel.stacked ? 'y' : `${as.kind} ${as.rate ? 'rate' : (as.suffix ?? '')}`;
    if (!scales.some((scale) => scale.key === key)) scales.push(scaleOf(key, as, panel, ctx));
    return { ...each, scale: key, factor: as.factor, band: !panel.stacked, as };
  });
  if (panel.stacked) layers.reverse();
  if (panel.stacked && panel.peak && layers.length)
    layers.push({ id: panel.peak, label: 'peak', colour: 6, hollow: true, scale: 'y', factor: 1, band: false });
  if (!scales.length) scales.push(scaleOf('y', measure('', '', ctx.settings), panel, ctx));
  return { stacked: panel.stacked, filled: panel.filled, layers, scales };
}

function scaleOf(key, as, panel, ctx) {
  // asked at each drawing: the size of the memory may come after the first one
  const most = () => (panel.mostOf === 'memory.total' && ctx.status ? ctx.status.mem_kb * 1024 : panel.most);
  const steps = increments(as, ctx.settings);
  return {
    key,
    increments: steps,
    ticks: (value) => tick(value, as, ctx.settings),
    range: (low, high) => rangeOf(low, high, { most: most(), least: panel.least ?? 0 }),
  };
}

/** From zero, with some air above; what has a natural end shows it. */
export function rangeOf(low, high, { most, least }) {
  if (most) return [0, Math.max(most, high ?? 0)];
  const top = Math.max(high ?? 0, least);
  return [Math.min(low ?? 0, 0), top > 0 ? top * 1.08 : 1];
}

/** The columns that uPlot draws, in the order of its series. */
function table({ plan, panel }, frame) {
  const times = [];
  for (let n = 0; n < frame.count; n++) times.push(timeAt(frame, n));
  const none = new Array(frame.count).fill(null);
  const lines = plan.layers.filter((each) => !each.hollow);
  const sums = panel.stacked
    ? stack(
        lines
          .slice()
          .reverse()
          .map((each) => numbers(each, frame, 'avg', each.factor) ?? none),
      ).reverse()
    : null;
  const data = [times];
  plan.layers.forEach((each, n) => {
    if (each.hollow)
      data.push(numbers(each, frame, 'max', each.factor) ?? numbers(each, frame, 'avg', each.factor) ?? none);
    else if (sums) data.push(sums[n]);
    else {
      if (seriesOf(each) === 3)
        data.push(numbers(each, frame, 'min', each.factor) ?? none, numbers(each, frame, 'max', each.factor) ?? none);
      data.push(numbers(each, frame, 'avg', each.factor) ?? none);
    }
  });
  return data;
}

/** Moves the cursor and says its numbers. */
function say(card, ctx, given, frame) {
  card.chart?.moments(given);
  if (!frame) return;
  const time = given.cursor ?? given.a ?? frame.covered;
  for (const item of card.items) text(item.value, spoken(item.each, frame, time, ctx.settings));
  const said = card.items.map((item) => `${item.each.label} ${item.value.textContent}`).join(', ');
  card.plot.setAttribute(
    'aria-label',
    `${card.panel.title} at ${clock(time, ctx.zone(), ctx.settings.locale)}: ${said}`,
  );
}

export function spoken(each, frame, time, settings) {
  return format(valueAt(frame, each.id, time), unitOf(each, frame), each.id, settings);
}
