// Dashboards of Grafana, as JSON, become boards: panels of time series, numbers, gauges and tables over Prometheus.
// Everything else is named. Variables of queries stand for everything, as there is nothing to choose them by.
import { VERSION } from './boards-kept.js';

const FORMS = {
  timeseries: 'graph',
  graph: 'graph',
  stat: 'stat',
  singlestat: 'stat',
  gauge: 'stat',
  bargauge: 'stat',
  table: 'table',
  'table-old': 'table',
};
/** Grafana's units: the page's, and what the number is multiplied with. */
const UNITS = {
  bytes: ['B'],
  decbytes: ['B'],
  kbytes: ['KiB'],
  Bps: ['B/s'],
  binBps: ['B/s'],
  bps: ['Mbit/s', '1e-6'],
  binbps: ['Mbit/s', '1e-6'],
  s: ['s'],
  ms: ['ms'],
  percent: ['%'],
  percentunit: ['%', '100'],
  ops: ['1/s'],
  iops: ['1/s'],
  pps: ['1/s'],
  reqps: ['1/s'],
  cps: ['1/s'],
};
const BUILT_IN = {
  __rate_interval: '1m',
  __interval: '1m',
  __range: '1h',
  __interval_ms: '60000',
  __range_s: '3600',
  __range_ms: '3600000',
};
const CHARTS_MAX = 200;
const QUERIES_MAX = 64;
const TITLE_MAX = 300;
/** Columns of 24 from which on a chart is wide. */
const WIDE = 16;

const listOf = (value) => (Array.isArray(value) ? value.filter((each) => each && typeof each === 'object') : []);
const textOf = (value) => (typeof value === 'string' ? value : '');

export const isDashboard = (given) =>
  Boolean(given) &&
  typeof given === 'object' &&
  !given.charts &&
  (Array.isArray(given.panels) || Array.isArray(given.rows));

/** The board, and what of the dashboard is not on it. */
export function fromGrafana(given, name) {
  const left = [];
  const variables = variablesOf(given);
  const charts = [];
  for (const panel of panelsOf(given)) {
    const title = textOf(panel.title).slice(0, TITLE_MAX) || textOf(panel.type) || 'a panel';
    try {
      if (charts.length >= CHARTS_MAX) throw new Error(`a board has at most ${CHARTS_MAX} charts`);
      charts.push(chartOf(panel, title, variables));
    } catch (error) {
      left.push(`${title}: ${error.message}`);
    }
  }
  return { board: { version: VERSION, title: textOf(given.title).slice(0, TITLE_MAX) || name, charts }, left };
}

/** Panels in their order, those within rows too. */
function panelsOf({ panels, rows }) {
  const all = [...listOf(panels), ...listOf(rows).flatMap((row) => listOf(row.panels))];
  return all.flatMap((panel) => (panel.type === 'row' ? listOf(panel.panels) : [panel]));
}

/** Values of variables that have one; those of queries have none: they stand for everything. */
function variablesOf({ templating }) {
  const values = new Map(Object.entries(BUILT_IN));
  for (const { name, type, current, query } of listOf(templating?.list)) {
    const value = textOf(current?.value) || (type === 'constant' || type === 'textbox' ? textOf(query) : '');
    const isFixed = ['constant', 'custom', 'textbox', 'interval'].includes(type) && value && value !== '$__all';
    const interval = value.startsWith('$__auto') || value === 'auto' ? BUILT_IN.__interval : value;
    values.set(textOf(name), isFixed ? interval : null);
  }
  return values;
}

function chartOf(panel, title, variables) {
  const form = Object.hasOwn(FORMS, textOf(panel.type)) ? FORMS[panel.type] : '';
  if (!form) throw new Error(`panels of type ${textOf(panel.type) || 'none'} are not drawn here`);
  const targets = listOf(panel.targets).filter(({ hide }) => !hide);
  const other = targets.find(({ datasource }) => !isPrometheus(datasource));
  if (other) throw new Error(`asks ${textOf(other.datasource?.type) || 'another source'}, not Prometheus`);
  const found = targets.filter(({ expr }) => textOf(expr).trim());
  if (!found.length) throw new Error('has no expression');
  if (found.length > QUERIES_MAX) throw new Error(`has more than ${QUERIES_MAX} expressions`);
  const [unit = '', factor] = unitOf(panel);
  const queries = found.map(({ expr, legendFormat }) => {
    const plain = substituted(expr, variables);
    const legend = textOf(legendFormat);
    return {
      expr: factor ? `(${plain}) * ${factor}` : plain,
      ...(legend && legend !== '__auto' ? { legend: legend.slice(0, TITLE_MAX) } : {}),
    };
  });
  const wide = Number(panel.gridPos?.w) >= WIDE || Number(panel.span) >= WIDE / 2;
  return { title, queries, form, ...(unit ? { unit } : {}), ...(wide ? { wide } : {}) };
}

/** Dashboards that are shared have a variable in the place of the source. */
function isPrometheus(datasource) {
  const type = textOf(datasource?.type);
  return !type || type === 'prometheus';
}

function unitOf(panel) {
  const unit = textOf(panel.fieldConfig?.defaults?.unit) || textOf(panel.yaxes?.[0]?.format) || textOf(panel.format);
  return Object.hasOwn(UNITS, unit) ? UNITS[unit] : [];
}

const VARIABLE = /\$\{(\w+)(?::[^}]*)?\}|\$(\w+)|\[\[(\w+)(?::[^\]]*)?\]\]/g;
const MATCHER = /([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/g;

/** The expression with values of variables; a matcher with one that has none takes everything. */
export function substituted(expr, variables) {
  const valueOf = (...names) => variables.get(names.find(Boolean));
  const filled = expr.replace(VARIABLE, (all, ...groups) => valueOf(...groups.slice(0, 3)) ?? all);
  const open = filled.replace(MATCHER, (all, label, op, value) => {
    const any = value.replace(VARIABLE, '.*');
    return any === value ? all : `${label}=~${any}`;
  });
  const rest = [...open.matchAll(VARIABLE)].find(([, one, two, three]) => one || two || three);
  if (rest) throw new Error(`uses ${rest[0]} outside of a matcher`);
  return open.trim();
}
