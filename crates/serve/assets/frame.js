// A frame is what was asked for a range: one grid of times, one list of numbers a field. Live samples are added to its
// end. Point n is of the time from first + (n-1) * step to first + n * step; null is a gap and stays one.

import { isStored } from './stored.js';

const SLIVER = 0.1;
/** Seconds that a stored value may be late. */
const LATE = 30;

/** From the answer of /series. `covered` is the last moment that the answer speaks of. */
export function fromSeries(answer, thru) {
  const fields = new Map();
  for (const { id, unit, help, avg, min, max } of answer.series)
    fields.set(id, { id, unit, help, avg, min: min ?? null, max: max ?? null });
  const frame = {
    first: answer.first,
    step: answer.step,
    count: answer.count,
    resolution: answer.resolution,
    fields,
    marks: answer.marks ?? [],
    covered: 0,
  };
  frame.covered = Math.min(lastKnown(frame), thru ?? Infinity);
  return frame;
}

export const timeAt = (frame, n) => frame.first + n * frame.step;

/** The point that a moment belongs to. */
export const indexAt = (frame, time) => Math.ceil((time - frame.first) / frame.step - 1e-6) + 0;

/** The end of the last point at which anything is known. */
export function lastKnown(frame) {
  for (let n = frame.count - 1; n >= 0; n--) {
    for (const field of frame.fields.values())
      if (field.avg[n] !== null && field.avg[n] !== undefined) return timeAt(frame, n);
  }
  return frame.first - frame.step;
}

/**
 * Adds a live sample: `{time, elapsed, values}`. What the frame has already is left alone, a hole between is null,
 * and a point that has several samples gets their average, weighted by time, and their extremes.
 */
export function append(frame, sample, wanted) {
  if (sample.time <= frame.covered + 1e-3) return false;
  const n = indexAt(frame, sample.time);
  if (n < 0) return false;
  grow(frame, n + 1);
  const begin = Math.max(frame.covered, sample.time - sample.elapsed);
  for (const [id, value] of Object.entries(sample.values)) {
    if (!frame.fields.has(id)) {
      if (!wanted?.(id)) continue;
      frame.fields.set(id, { id, unit: '', help: '', avg: new Array(frame.count).fill(null), min: null, max: null });
    }
    const field = frame.fields.get(id);
    for (let at = Math.max(0, indexAt(frame, begin + 1e-3)); at <= n; at++)
      merge(frame, field, at, value, begin, sample.time);
  }
  frame.covered = sample.time;
  return true;
}

/** Whether time passed between what is covered and a sample that comes after it. */
export const holeBefore = (frame, { time, elapsed }) =>
  time > frame.covered + 1e-3 && time - elapsed - frame.covered > elapsed / 2;

function grow(frame, count) {
  if (count <= frame.count) return;
  for (const { avg, min, max } of frame.fields.values()) {
    for (const values of [avg, min, max]) if (values) while (values.length < count) values.push(null);
  }
  frame.count = count;
}

/**
 * `begin` and `end` are what the sample is of. Samples are a few ms late: such a sliver of the next point is not its
 * value.
 */
function merge(frame, field, n, value, begin, end) {
  const start = timeAt(frame, n) - frame.step;
  const here = Math.min(end, start + frame.step) - Math.max(begin, start);
  const old = field.avg[n];
  if (value === null || here < SLIVER * Math.min(frame.step, end - begin)) return;
  if (old === null || old === undefined) {
    field.avg[n] = value;
    if (field.min) field.min[n] = field.max[n] = value;
    return;
  }
  const before = Math.max(0, begin - start);
  field.min ??= field.avg.slice();
  field.max ??= field.avg.slice();
  field.avg[n] = (old * before + value * here) / Math.max(before + here, 1e-9);
  field.min[n] = Math.min(field.min[n] ?? old, value);
  field.max[n] = Math.max(field.max[n] ?? old, value);
}

/** Forgets what lies before a moment, so that a page left open does not grow. */
export function trim(frame, from) {
  const drop = Math.max(0, indexAt(frame, from) - 1);
  if (drop < 60) return;
  for (const { avg, min, max } of frame.fields.values()) for (const values of [avg, min, max]) values?.splice(0, drop);
  frame.first += drop * frame.step;
  frame.count -= drop;
  frame.marks = frame.marks.filter((mark) => mark.until >= from);
}

/** What a field says at a moment; null where nothing is known. */
export function valueAt(frame, id, time, of = 'avg') {
  const field = frame?.fields.get(id);
  if (!field) return null;
  const values = field[of] ?? field.avg;
  let n = Math.min(indexAt(frame, time), frame.count - 1);
  // what others send comes later than what this machine knows of itself
  const least = isStored(id) ? n - Math.max(2, LATE / frame.step) : n;
  while (n > least && n > 0 && (values[n] ?? null) === null) n -= 1;
  return values[n] ?? null;
}

/** Fills the time between two reads with the values of the first one, for `secondsOf(id)` at most; 0: not at all. */
export function hold(frame, secondsOf) {
  const last = Math.min(frame.count - 1, Math.round((frame.covered - frame.first) / frame.step));
  for (const { id, avg } of frame.fields.values()) {
    const most = Math.ceil(secondsOf(id) / frame.step);
    if (!most) continue;
    let since = most;
    for (let n = 0; n <= last && timeAt(frame, n) <= frame.covered; n++) {
      if ((avg[n] ?? null) !== null) since = 0;
      else if (n > 0 && since < most) {
        since += 1;
        avg[n] = avg[n - 1];
      }
    }
  }
}

/** Sums from the bottom up; where no part is known the sum is not either. */
export function stack(layers) {
  const length = layers[0]?.length ?? 0;
  const below = new Array(length).fill(null);
  return layers.map((layer) => {
    for (let n = 0; n < length; n++)
      if (layer[n] !== null && layer[n] !== undefined) below[n] = (below[n] ?? 0) + layer[n];
    return below.slice();
  });
}
