// Answers of Prometheus' API as what the page draws: a frame of a chart, rows of a table, the place of an error.

/** Steps of a range, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const POINTS = 500;
/** Most points that the server answers with. */
const POINTS_MAX = 11000;

/** A step for a range of so many seconds: a round one with at most 500 points. */
export function stepFor(length) {
  return STEPS.find((step) => length / step <= POINTS) ?? Math.ceil(length / POINTS / 86400) * 86400;
}

const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400, w: 604800, y: 31536000 };

/** Seconds of `15`, `15s` or `1h30m`; null for anything else. */
export function seconds(text) {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) || null;
  if (!/^(\d+(ms|[smhdwy]))+$/.test(text)) return null;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(/(\d+)(ms|[smhdwy])/g)) sum += Number(number) * UNITS[unit];
  return sum || null;
}

/** The range that is asked for: whole steps, so that the same moments are asked for as time goes on. */
export function rangeOf({ from, thru }, step) {
  const end = Math.floor(thru / step) * step;
  const start = Math.max(Math.ceil(from / step) * step, end - (POINTS_MAX - 1) * step);
  return { start: Math.min(start, end), end, step };
}

/** A number as the API writes it; null where nothing can be drawn. */
function number(text) {
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Numbers of a matrix over the range that was asked for. The field of series n is `#n`; `unit` is of all. */
export function frameOf(matrix, { start, end, step }, unit) {
  const count = Math.floor((end - start) / step + 1e-6) + 1;
  const fields = new Map();
  matrix.forEach(({ metric, values }, n) => {
    const avg = new Array(count).fill(null);
    for (const [time, text] of values) {
      const at = Math.round((time - start) / step);
      if (at >= 0 && at < count) avg[at] = number(text);
    }
    const of = unit || unitOf(metric);
    fields.set(`#${n}`, { id: `#${n}`, unit: of, help: metricText(metric), avg, min: null, max: null });
  });
  return { first: start, step, count, resolution: step, fields, marks: [], covered: end };
}

/** The unit that a metric's name ends with. A rate has no name any more. */
const unitOf = (metric) => (/_bytes$/.test(metric.__name__ ?? '') ? 'B' : '');

const pair = ([name, value]) => `${name}=${JSON.stringify(value)}`;
const othersOf = (metric) => Object.entries(metric).filter(([name]) => name !== '__name__');

/** A series as PromQL writes it: `up{job="node"}`. */
export function metricText(metric) {
  const others = othersOf(metric);
  const name = metric.__name__ ?? '';
  return others.length || !name ? `${name}{${others.map(pair).join(', ')}}` : name;
}

/** What all series share, and what tells each from the others. */
export function namesOf(metrics) {
  const same = (name) => metrics.every((each) => each[name] === metrics[0][name]);
  const shared = Object.fromEntries(Object.entries(metrics[0] ?? {}).filter(([name]) => same(name)));
  if (metrics.length < 2) return { shared: '', names: metrics.map(metricText) };
  const names = metrics.map((metric) => {
    const own = Object.entries(metric).filter(([name]) => !Object.hasOwn(shared, name));
    // one label that all have needs no name
    if (own.length === 1) return String(own[0][1]);
    return metricText(Object.fromEntries(own));
  });
  return { shared: Object.keys(shared).length ? metricText(shared) : '', names };
}

/** Columns and rows of an answer at a moment: a column a label, `__name__` first. */
export function tableOf({ resultType, result }) {
  if (resultType === 'scalar' || resultType === 'string') return { columns: [], rows: [[result[1]]] };
  const labels = new Set();
  for (const { metric } of result) for (const name of Object.keys(metric)) labels.add(name);
  const columns = [...labels].sort((a, b) => (b === '__name__') - (a === '__name__') || a.localeCompare(b));
  const cells = (metric) => columns.map((name) => metric[name] ?? '');
  if (resultType === 'vector')
    return { columns, rows: result.map(({ metric, value }) => [...cells(metric), value[1]]) };
  const rows = result.flatMap(({ metric, values }) => values.map(([time, text]) => [...cells(metric), text, time]));
  return { columns, rows, hasTimes: true };
}

/** The place that the parser blames, as an index into the expression, and its words; null without a place. */
export function blamed(message, expr) {
  const found = /(\d+):(\d+): parse error: ([^]*)$/.exec(message);
  if (!found) return null;
  const [line, column] = [Number(found[1]), Number(found[2])];
  const lines = expr.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const text = lines[line - 1] ?? '';
  // the server counts bytes
  const bytes = new TextEncoder().encode(text).slice(0, column - 1);
  const within = new TextDecoder().decode(bytes).length;
  return { line: text, within, at: before + within, message: found[3] };
}
