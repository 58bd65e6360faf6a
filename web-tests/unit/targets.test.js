import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberText, rateText, relation, seen, ticSteps, ticText, turns } from '../../crates/serve/assets/target-units.js';

const unit = (more = {}) => ({ scale: 1, factor: 1, tics: 1, kilo: 1000, prefixes: ['', 'k', 'M', 'G', 'T', 'P'], name: 'B/s', whole: false, ...more });
const bits = unit({ scale: 8, name: 'b/s' });

test('rates are written as MRTG writes them', () => {
  for (const [rate, as, expect] of [
    [0, unit(), '0.0 B/s'],
    [9999, unit(), '9999.0 B/s'],
    [10000, unit(), '10.0 kB/s'],
    [1250, bits, '10.0 kb/s'],
    [1e18, bits, '8000.0 Pb/s'],
    [41.6, unit({ prefixes: [''], name: '°C', whole: true }), '42 °C'],
    [20480, unit({ kilo: 1024, factor: 0.5 }), '10.0 kB/s'],
    [1234567, unit({ prefixes: [null, null, 'M'], name: '' }), '1.2 M'],
    [null, unit(), '–'],
  ])
    assert.equal(rateText(rate, as), expect);
});

test('with their part of MaxBytes, unless that is not wanted', () => {
  assert.equal(numberText(625000, bits, 1250000, false), '5000.0 kb/s (50.0 %)');
  assert.equal(numberText(625000, bits, 1250000, true), '5000.0 kb/s');
  assert.equal(numberText(5, unit(), 0, false), '5.0 B/s');
  assert.equal(numberText(null, unit(), 10, false), '–');
});

test('tics are short and round', () => {
  assert.deepEqual([0, 500, 20000, 1500000, null].map((value) => ticText(value, unit())), ['0', '500', '20 k', '1.5 M', '']);
  const steps = ticSteps(unit());
  for (const step of [0.001, 1, 20, 500, 5000, 2e6]) assert.ok(steps.some((each) => Math.abs(each / step - 1) < 1e-9), String(step));
  assert.ok(ticSteps(unit({ kilo: 1024 })).includes(1024));
});

test('days, weeks, months and years begin at local midnight', () => {
  const at = (text) => Date.parse(text) / 1000;
  const thru = at('2026-11-24T12:00:00Z');
  const found = (period, days) => turns(period, thru - days * 86400, thru, 'Europe/Berlin').map((time) => new Date(time * 1000).toISOString().slice(0, 16));
  assert.deepEqual(found('day', 1.6), ['2026-11-22T23:00', '2026-11-23T23:00']);
  assert.deepEqual(found('week', 9), ['2026-11-15T23:00', '2026-11-22T23:00']);
  // the clocks are put back between these
  assert.deepEqual(found('month', 60), ['2026-09-30T22:00', '2026-10-31T23:00']);
  assert.deepEqual(found('year', 400), ['2025-12-31T23:00']);
});

test('colours of others are made to be seen', () => {
  assert.equal(seen('#0000ff', '#ffffff'), '#0000ff');
  assert.notEqual(seen('#0000ff', '#14181f'), '#0000ff');
  assert.notEqual(seen('#ffff00', '#ffffff'), '#ffff00');
});

test('in as a part of out', () => {
  assert.deepEqual(relation([1, 3, null, 1], [2, 1, 1, 0]), [50, 100, null, null]);
});
