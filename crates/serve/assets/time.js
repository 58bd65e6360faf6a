// Ranges of time and how times are written. Times are seconds since 1970; no clock is read here.

export const RANGES = [
  [60, '1m'],
  [300, '5m'],
  [900, '15m'],
  [3600, '1h'],
  [21600, '6h'],
  [86400, '24h'],
  [604800, '7d'],
  ['all', 'all'],
];
export const DEFAULT_RANGE = 900;
const NARROWEST = 10;
/** Most points of a line: enough for 15 minutes of seconds. */
const POINTS_MAX = 920;
const POINTS_MIN = 400;
const SECONDS_SHOWN = 900;

/**
 * What is to be seen. `edge` is the newest moment there is, `oldest` the first. A range that nobody asked for
 * starts where the recording does, so that a new recording fills the chart.
 */
export function visible(state, edge, oldest) {
  if (state.thru !== undefined) return { from: state.from, thru: state.thru, live: false };
  const wanted = state.range ?? DEFAULT_RANGE;
  const known = oldest ?? edge - DEFAULT_RANGE;
  if (wanted === 'all') return { from: Math.min(known, edge - 60), thru: edge, live: true };
  const from = state.range === undefined ? Math.max(edge - wanted, Math.min(known, edge - 60)) : edge - wanted;
  return { from, thru: edge, live: true };
}

/**
 * The number of points that a line of a chart in a row of charts is asked for. A longer range has no more points than
 * the chart has pixels: extremes of the seconds between are in the answer anyway. `screen`: width and pixel ratio.
 */
export function pointsOf({ from, thru }, { width, ratio }) {
  if (thru - from <= SECONDS_SHOWN) return POINTS_MAX;
  return Math.min(POINTS_MAX, Math.max(POINTS_MIN, Math.ceil((width / 4) * ratio)));
}

/** Zooms about a moment; a factor below one looks closer. What reaches the edge stays live. */
export function zoom(view, factor, about, edge, oldest) {
  const whole = Math.max(edge - oldest, 60);
  const width = Math.min(Math.max((view.thru - view.from) * factor, NARROWEST), whole * 1.02);
  if (view.live && (about === null || about >= view.thru))
    return { range: Math.round(width), from: undefined, thru: undefined };
  const part = (about - view.from) / (view.thru - view.from);
  return between(about - part * width, about - part * width + width, edge, oldest);
}

/** Moves by a part of what is seen; meeting the edge makes it live again. */
export function pan(view, part, edge, oldest) {
  const width = view.thru - view.from;
  const from = view.from + part * width;
  if (part > 0 && from + width >= edge) return { range: Math.round(width), from: undefined, thru: undefined };
  return between(from, from + width, edge, oldest);
}

/** A fixed range within what there is, in whole tenths. */
export function between(from, thru, edge, oldest) {
  let [low, high] = from < thru ? [from, thru] : [thru, from];
  const width = Math.max(high - low, NARROWEST);
  high = Math.min((low + high) / 2 + width / 2, edge);
  low = Math.max(high - width, Math.min(oldest ?? -Infinity, high - NARROWEST));
  high = Math.min(Math.max(high, low + width), edge);
  return { range: undefined, from: tenth(low), thru: tenth(high) };
}

const tenth = (time) => Math.round(time * 10) / 10;

/** The time zone that the settings ask for; undefined is the browser's. */
export const zoneOf = (settings, status) =>
  settings.zone === 'utc' ? 'UTC' : settings.zone === 'machine' ? status?.tz : undefined;

const formats = new Map();
function intl(options, locale, zone) {
  const key = JSON.stringify([options, locale, zone]);
  if (!formats.has(key)) formats.set(key, make(options, locale, zone));
  return formats.get(key);
}

function make(options, locale, zone) {
  try {
    return new Intl.DateTimeFormat(locale, { ...options, timeZone: zone });
  } catch {
    // a zone that this browser does not know: UTC is at least true
    return new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' });
  }
}

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' };
const DAY = { month: 'short', day: 'numeric' };

/** Hours, minutes, seconds. */
export const clock = (time, zone, locale) => intl(CLOCK, locale, zone).format(time * 1000);

/** Date and time, for what may be of another day. */
export const stamp = (time, zone, locale) =>
  intl({ year: 'numeric', ...DAY, ...CLOCK }, locale, zone).format(time * 1000);

/** The label of a tick, as fine as the step between ticks is. */
export function tickLabel(time, step, zone, locale) {
  if (step < 60) return clock(time, zone, locale);
  if (step >= 86400) return intl(DAY, locale, zone).format(time * 1000);
  return intl({ hour: '2-digit', minute: '2-digit' }, locale, zone).format(time * 1000);
}

/** A length of time in at most two units: `3 h 5 min`. */
export function span(length) {
  const whole = Math.max(0, Math.round(length));
  if (whole < 120) return `${whole} s`;
  const units = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const at = units.findIndex(([size]) => whole >= size * (size === 60 ? 2 : 1));
  const [big, name] = units[at];
  const count = Math.floor(whole / big);
  if (at === units.length - 1) return `${count} ${name}`;
  const [small, rest] = units[at + 1];
  const left = Math.floor((whole % big) / small);
  return left && count < 10 ? `${count} ${name} ${left} ${rest}` : `${count} ${name}`;
}

export const ago = (time, edge) => (edge - time < 1.5 ? 'now' : `${span(edge - time)} ago`);
