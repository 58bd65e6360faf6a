// One chart. The only module that knows uPlot: it draws lines and axes; the cursor, pins and selection are ours,
// since they are shared by all charts, work by touch and keyboard, and stay at a time while the chart moves on.
import uPlot from './vendor/uPlot/uPlot.esm.js';
import { h } from './dom.js';
import { apart, tickSpace } from './ticks.js';
import { fade, inks, pen } from './theme.js';

// whole pixels: uPlot multiplies this number on screens with more of them, and knows no fractions
const FONT = '11px system-ui, sans-serif';
// room beside the plot for labels of the time axis
const LEFT_PX = 52;
const RIGHT_PX = 10;
const CLICK_PX = 5;
const TURN_INK = 'rgba(213, 40, 10, 0.55)';
// what changes no number is a tick at the top; a clock that was set, a boot or a warning is a line; a failure is thick
const TALL = { slow: 1 / 12, note: 1 / 12, okay: 1 / 3 };

/**
 * Draws into `host`, `size` large. `plan`: {stacked, filled, scales: [{key, ticks, increments, range, logarithmic}],
 * layers: [{colour, scale, band, fill, width}]}, and where it is MRTG's: {rules: [{value, colour, dash}],
 * turns: [time], leftward: time runs to the left}; `clock`: {label(time, step), zone}; `on`: hover(time|null),
 * pick(time, shift), select(from, thru), pan(seconds), zoom(factor, about).
 */
export function createChart(host, size, plan, clock, on) {
  const view = { from: 0, thru: 1, marks: [], leftward: Boolean(plan.leftward) };
  const plot = new uPlot(options(plan, clock, view, size), [[]], host);
  const lines = overlay(plot.over);
  pointer(plot, lines.selection, view, on);
  const place = (line, time) => {
    const seen = time !== null && time !== undefined && time >= view.from && time <= view.thru;
    line.hidden = !seen;
    if (seen) line.style.transform = `translateX(${Math.round(plot.valToPos(time, 'x'))}px)`;
  };
  let moments = {};
  const placeAll = () => {
    for (const name of ['cursor', 'a', 'b']) place(lines[name], moments[name]);
  };
  return {
    draw(data, from, thru, marks) {
      Object.assign(view, { from, thru, marks });
      plot.setData(data);
      placeAll();
    },
    moments(given) {
      moments = given;
      placeAll();
    },
    resize(width, height) {
      if (width !== plot.width || height !== plot.height) plot.setSize({ width, height });
      placeAll();
    },
    width: () => plot.over.clientWidth,
    canvas: () => plot.ctx.canvas,
    destroy: () => plot.destroy(),
  };
}

/** How many uPlot series a layer takes: its line, and both ends of its band. */
export const seriesOf = (each) => (each.band ? 3 : 1);

function options(plan, clock, view, size) {
  const ink = inks();
  const series = [{}];
  const bands = [];
  for (const each of plan.layers) {
    if (each.band) {
      bands.push({ series: [series.length + 1, series.length], fill: fade(pen(each.colour).colour, 0.25) });
      series.push(edge(each), edge(each));
    }
    series.push(line(each, plan));
  }
  return {
    width: Math.max(size.width, 100),
    height: Math.max(size.height, 80),
    padding: [8, 10, 0, 0],
    cursor: { show: false },
    legend: { show: false },
    select: { show: false },
    tzDate: (time) => (clock.zone ? uPlot.tzDate(new Date(time * 1000), clock.zone) : new Date(time * 1000)),
    scales: Object.fromEntries([
      ['x', { time: true, dir: view.leftward ? -1 : 1, range: () => [view.from, view.thru] }],
      ...plan.scales.map((scale) => [
        scale.key,
        { distr: scale.logarithmic ? 3 : 1, range: (_, low, high) => scale.range(low, high) },
      ]),
    ]),
    axes: [timeAxis(clock, ink), ...plan.scales.slice(0, 2).map((scale, n) => valueAxis(scale, n, ink))],
    series,
    bands,
    hooks: {
      drawClear: [(plot) => shade(plot, view, ink)],
      draw: [(plot) => rule(plot, view, ink), (plot) => ruleMrtg(plot, plan)],
    },
  };
}

const edge = ({ scale }) => ({ scale, stroke: 'transparent', width: 0, points: { show: false } });

function line(each, plan) {
  const { colour, dash } = pen(each.colour);
  const opacity = each.fill ?? (plan.stacked ? (each.hollow ? 0 : 0.85) : plan.filled ? 0.16 : 0);
  const fill = opacity ? fade(colour, opacity) : undefined;
  return {
    scale: each.scale,
    stroke: each.hollow ? inks().text : colour,
    width: each.width ?? (plan.stacked ? (each.hollow ? 1 : 0) : 1.4),
    dash: each.hollow ? [2, 2] : dash,
    fill,
    points: { show: false, size: 3, fill: colour, filter: lonely },
  };
}

/** A known point between two gaps makes no line: it gets a dot. */
function lonely(plot, n, show, gaps) {
  const values = plot.data[n];
  const found = [];
  for (let at = 0; at < values.length; at++) {
    if (values[at] !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null) found.push(at);
  }
  return found.length ? found : null;
}

function timeAxis(clock, ink) {
  return {
    stroke: ink.text,
    font: FONT,
    size: 22,
    gap: 4,
    space: (plot, axis, from, thru, plotPx) =>
      tickSpace(thru - from, plotPx, { long: wide(clock.label(from, 1)), short: wide(clock.label(from, 60)) }),
    grid: { stroke: ink.grid, width: 1 },
    ticks: { show: false },
    values: (plot, splits, axis, space, step) => {
      const labels = splits.map((time) => {
        const text = clock.label(time, step);
        // uPlot draws labels at whole pixels of the canvas.
        const middle = (Math.round(plot.valToPos(time, 'x', true)) - plot.bbox.left) / uPlot.pxRatio;
        return { text, middle, width: wide(text) };
      });
      return apart(labels, -LEFT_PX, plot.bbox.width / uPlot.pxRatio + RIGHT_PX);
    },
  };
}

const pencil = document.createElement('canvas').getContext('2d');
const widths = new Map();

/** Pixels that a label takes. Digits are all of one width. */
function wide(label) {
  const key = label.replace(/\d/g, '0');
  if (!widths.has(key)) {
    pencil.font = FONT;
    widths.set(key, pencil.measureText(key).width);
  }
  return widths.get(key);
}

function valueAxis(scale, n, ink) {
  return {
    scale: scale.key,
    side: n ? 1 : 3,
    stroke: ink.text,
    font: FONT,
    size: 52,
    gap: 6,
    space: 26,
    incrs: scale.increments,
    grid: { show: n === 0, stroke: ink.grid, width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map(scale.ticks),
  };
}

function shade(plot, { marks, from, thru }, ink) {
  const { left, top, width, height } = plot.bbox;
  for (const mark of marks) {
    if (mark.until <= mark.time || mark.until < from || mark.time > thru) continue;
    const begin = Math.max(plot.valToPos(mark.time, 'x', true), left);
    const end = Math.min(plot.valToPos(mark.until, 'x', true), left + width);
    plot.ctx.fillStyle = ink.gap;
    plot.ctx.fillRect(begin, top, Math.max(end - begin, 1), height);
  }
}

function rule(plot, { marks, from, thru }, ink) {
  const { top, height } = plot.bbox;
  const { ctx } = plot;
  ctx.save();
  for (const mark of marks) {
    if (mark.kind === 'gap' || mark.time < from || mark.time > thru) continue;
    ctx.fillStyle = ink.marks[mark.kind] ?? ink.mark;
    const tall = Math.round(height * (TALL[mark.kind] ?? 1));
    const wide = devicePixelRatio * (mark.kind === 'failure' ? 2 : 1);
    ctx.fillRect(Math.round(plot.valToPos(mark.time, 'x', true)), top, wide, tall);
  }
  ctx.restore();
}

/** Limits as lines across, turns of days or years as lines in red, as MRTG has them. */
function ruleMrtg(plot, { rules = [], turns = [] }) {
  const { left, top, width, height } = plot.bbox;
  const { ctx } = plot;
  const stroke = (colour, dash, ...ends) => {
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash.map((each) => each * devicePixelRatio));
    ctx.beginPath();
    ends.forEach(([x, y], n) => (n ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.stroke();
  };
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  for (const time of turns) {
    const x = Math.round(plot.valToPos(time, 'x', true));
    stroke(TURN_INK, [], [x, top], [x, top + height]);
  }
  for (const { value, colour, dash } of rules) {
    const y = Math.round(plot.valToPos(value, 'y', true));
    if (y >= top && y <= top + height) stroke(colour, dash, [left, y], [left + width, y]);
  }
  ctx.restore();
}

function overlay(over) {
  const lines = {
    cursor: h('div', { class: 'line cursor', hidden: true }),
    a: h('div', { class: 'line pin', hidden: true }, h('span', {}, 'A')),
    b: h('div', { class: 'line pin', hidden: true }, h('span', {}, 'B')),
    selection: h('div', { class: 'selection', hidden: true }),
  };
  over.append(lines.a, lines.b, lines.cursor, lines.selection);
  return lines;
}

/** Mouse and touch: move is the cursor, click pins, drag zooms, with Shift it pans; two fingers zoom. */
function pointer(plot, selection, view, on) {
  const { over } = plot;
  const down = new Map();
  let drag = null;
  const offset = (event) => Math.min(Math.max(event.clientX - over.getBoundingClientRect().left, 0), over.clientWidth);
  const timeOf = (px) => {
    const part = px / over.clientWidth;
    return view.from + (view.leftward ? 1 - part : part) * (view.thru - view.from);
  };

  over.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    over.setPointerCapture(event.pointerId);
    down.set(event.pointerId, offset(event));
    drag =
      down.size === 1
        ? {
            start: offset(event),
            last: offset(event),
            shift: event.shiftKey,
            touch: event.pointerType === 'touch',
            moved: false,
          }
        : { pinch: spread(down), moved: true };
    if (drag.touch) on.hover(timeOf(drag.start));
  });
  over.addEventListener('pointermove', (event) => {
    const px = offset(event);
    if (!drag) return on.hover(timeOf(px));
    if (down.has(event.pointerId)) down.set(event.pointerId, px);
    if (drag.pinch) return pinch(drag, down, timeOf, on);
    drag.moved ||= Math.abs(px - drag.start) > CLICK_PX;
    if (drag.touch) on.hover(timeOf(px));
    else if (drag.moved && drag.shift) on.pan(((drag.last - px) / over.clientWidth) * (view.thru - view.from));
    else if (drag.moved) show(selection, drag.start, px);
    drag.last = px;
  });
  const up = (event) => {
    down.delete(event.pointerId);
    selection.hidden = true;
    const done = drag;
    drag = down.size ? drag : null;
    if (!done || done.pinch || event.type === 'pointercancel') return;
    if (!done.moved) on.pick(timeOf(done.start), done.shift);
    else if (!done.touch && !done.shift) on.select(timeOf(done.start), timeOf(offset(event)));
  };
  over.addEventListener('pointerup', up);
  over.addEventListener('pointercancel', up);
  over.addEventListener('pointerleave', (event) => event.pointerType !== 'touch' && !drag && on.hover(null));
  over.addEventListener('dblclick', () => on.back());
  over.addEventListener('wheel', (event) => wheel(event, over, view, timeOf(offset(event)), on), { passive: false });
}

function show(selection, start, px) {
  selection.hidden = false;
  selection.style.left = `${Math.min(start, px)}px`;
  selection.style.width = `${Math.abs(px - start)}px`;
}

function spread(down) {
  const [one, two] = [...down.values()];
  return { apart: Math.max(Math.abs(two - one), 20), middle: (one + two) / 2 };
}

function pinch(drag, down, timeOf, on) {
  if (down.size < 2) return;
  const now = spread(down);
  if (Math.abs(now.apart / drag.pinch.apart - 1) < 0.15) return;
  on.zoom(drag.pinch.apart / now.apart, timeOf(now.middle));
  drag.pinch = now;
}

/** The wheel alone scrolls the page, as everywhere; with Ctrl it zooms, sideways it pans. */
function wheel(event, over, view, time, on) {
  const sideways = event.shiftKey
    ? event.deltaY || event.deltaX
    : Math.abs(event.deltaX) > Math.abs(event.deltaY)
      ? event.deltaX
      : 0;
  if (!event.ctrlKey && !event.metaKey && !sideways) return;
  event.preventDefault();
  if (sideways) on.pan((sideways / over.clientWidth) * (view.thru - view.from));
  else on.zoom(event.deltaY > 0 ? 1.25 : 0.8, time);
}
