import assert from 'node:assert/strict';
import { test } from 'node:test';
import { append, fromSeries, holeBefore, indexAt, lastKnown, stack, trim, valueAt } from '../../crates/serve/assets/frame.js';

const answer = (step, avg, extremes = {}) => ({ first: 100 + step, step, count: avg.length, resolution: 1, marks: [], series: [{ id: 'a', unit: '%', help: '', avg: avg.slice(), ...extremes }] });
const sample = (time, value, elapsed = 1) => ({ time, elapsed, values: { a: value } });

test('a point is of the time up to and with its end', () => {
  const frame = fromSeries(answer(10, [1, 2, 3]));
  for (const [time, n] of [[101, 0], [110, 0], [110.1, 1], [120, 1], [130, 2]]) assert.equal(indexAt(frame, time), n, String(time));
  assert.equal(valueAt(frame, 'a', 115), 2);
  assert.equal(valueAt(frame, 'b', 115), null);
});

test('what is known ends where the last number is', () => {
  assert.equal(lastKnown(fromSeries(answer(1, [1, 2, null, null]))), 102);
  assert.equal(fromSeries(answer(1, [1, 2, 3]), 102.5).covered, 102.5);
});

test('live samples go on where the answer ended', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  assert.equal(append(frame, sample(102, 9)), false, 'known already');
  assert.equal(append(frame, sample(103, 3)), true);
  assert.deepEqual(frame.fields.get('a').avg, [1, 2, 3]);
});

test('a hole in the stream is a gap', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  append(frame, sample(106, 6));
  assert.deepEqual(frame.fields.get('a').avg, [1, 2, null, null, null, 6]);
});

test('a hole is noticed, lateness is not', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  for (const [time, elapsed, expected] of [[103, 1, false], [103.004, 1.004, false], [104, 1, true], [104, 2, false], [102, 1, false], [101, 1, false]]) assert.equal(holeBefore(frame, sample(time, 0, elapsed)), expected, `${time} ${elapsed}`);
});

test('a sample over several seconds is of all of them', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  append(frame, sample(105, 5, 3));
  assert.deepEqual(frame.fields.get('a').avg, [1, 2, 5, 5, 5]);
});

test('a null in a sample stays a gap', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  append(frame, sample(103, null));
  assert.deepEqual(frame.fields.get('a').avg, [1, 2, null]);
});

// samples come some ms after the second; the sliver made a band of every point
test('a late sample is of its second, not of the next', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  append(frame, sample(103.003, 3, 1.003));
  append(frame, sample(104, 4, 0.997));
  const { avg, min } = frame.fields.get('a');
  assert.equal(avg[2], 3);
  assert.ok(Math.abs(avg[3] - 4) < 0.01);
  assert.equal(min, null);
});

test('several samples in a point: average by time, extremes kept', () => {
  const frame = fromSeries(answer(10, [1]));
  for (let time = 111; time <= 120; time++) append(frame, sample(time, time === 115 ? 100 : 0));
  const { avg, min, max } = frame.fields.get('a');
  assert.ok(Math.abs(avg[1] - 10) < 1e-9);
  assert.deepEqual([min[1], max[1]], [0, 100]);
});

test('a field that was not asked for is not taken, one that is gets its past as gaps', () => {
  const frame = fromSeries(answer(1, [1, 2]));
  append(frame, { time: 103, elapsed: 1, values: { a: 3, 'b:new': 7, c: 1 } }, (id) => id.startsWith('b:'));
  assert.deepEqual(frame.fields.get('b:new').avg, [null, null, 7]);
  assert.equal(frame.fields.has('c'), false);
});

test('what has left the range is forgotten, in steps', () => {
  const frame = fromSeries(answer(1, Array.from({ length: 200 }, (_, n) => n)));
  trim(frame, 120);
  assert.equal(frame.count, 200, 'little is not worth the work');
  trim(frame, 250);
  assert.equal(valueAt(frame, 'a', 251), 150);
  assert.ok(frame.count < 60);
});

test('a stack is sums, and a gap only where nothing is known', () => {
  assert.deepEqual(stack([[1, null, null], [2, 3, null]]), [[1, null, null], [3, 3, null]]);
  assert.deepEqual(stack([]), []);
});
