import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, between, clock, pan, span, tickLabel, visible, zoneOf, zoom } from '../../crates/serve/assets/time.js';

const EDGE = 100000, OLDEST = 50000;

test('what is seen', () => {
  const cases = [
    ['nothing asked: 15 minutes', {}, OLDEST, { from: EDGE - 900, thru: EDGE, live: true }],
    ['nothing asked, a young recording: from its start', {}, EDGE - 120, { from: EDGE - 120, thru: EDGE, live: true }],
    ['nothing asked, a newborn recording: one minute', {}, EDGE - 3, { from: EDGE - 60, thru: EDGE, live: true }],
    ['a range is kept, known or not', { range: 86400 }, OLDEST, { from: EDGE - 86400, thru: EDGE, live: true }],
    ['all there is', { range: 'all' }, OLDEST, { from: OLDEST, thru: EDGE, live: true }],
    ['fixed', { from: 60000, thru: 60100 }, OLDEST, { from: 60000, thru: 60100, live: false }],
  ];
  for (const [name, state, oldest, expected] of cases) assert.deepEqual(visible(state, EDGE, oldest), expected, name);
});

test('zoom keeps the moment under the cursor, and the edge live', () => {
  const fixed = { from: 60000, thru: 60400, live: false };
  assert.deepEqual(zoom(fixed, 0.5, 60100, EDGE, OLDEST), { range: undefined, from: 60050, thru: 60250 });
  const live = { from: EDGE - 900, thru: EDGE, live: true };
  assert.deepEqual(zoom(live, 0.5, null, EDGE, OLDEST), { range: 450, from: undefined, thru: undefined });
  assert.equal(zoom({ from: EDGE - 12, thru: EDGE, live: true }, 0.01, null, EDGE, OLDEST).range, 10, 'not narrower than ten seconds');
  assert.equal(zoom(live, 1e9, null, EDGE, OLDEST).range, 51000, 'not wider than there is');
});

test('pan stops at the oldest, and is live at the edge', () => {
  const view = { from: 60000, thru: 60100, live: false };
  assert.deepEqual(pan(view, 0.5, EDGE, OLDEST), { range: undefined, from: 60050, thru: 60150 });
  assert.deepEqual(pan(view, 1e6, EDGE, OLDEST), { range: 100, from: undefined, thru: undefined });
  const first = pan({ from: 50010, thru: 50110, live: false }, -10, EDGE, OLDEST);
  assert.ok(first.from >= OLDEST - 1000 && first.thru > first.from);
});

test('a drag either way is a range, within what there is', () => {
  assert.deepEqual(between(70100, 70000, EDGE, OLDEST), { range: undefined, from: 70000, thru: 70100 });
  assert.equal(between(EDGE - 5, EDGE + 500, EDGE, OLDEST).thru, EDGE);
  const thin = between(70000, 70000.1, EDGE, OLDEST);
  assert.ok(Math.abs(thin.thru - thin.from - 10) < 0.2, 'a click that slipped is not a range of nothing');
});

test('lengths of time', () => {
  const cases = [[0, '0 s'], [1, '1 s'], [119, '119 s'], [120, '2 min'], [150, '2 min 30 s'], [900, '15 min'], [3600, '1 h'], [11100, '3 h 5 min'], [86400, '1 d'], [90000, '1 d 1 h'], [-5, '0 s']];
  for (const [length, expected] of cases) assert.equal(span(length), expected);
  assert.equal(ago(99999, EDGE), 'now');
  assert.equal(ago(99400, EDGE), '10 min ago');
});

test('times are in the zone that is asked for', () => {
  const time = Date.UTC(2026, 10, 22, 0, 10, 5) / 1000;
  assert.equal(clock(time, 'UTC', 'en-GB'), '00:10:05');
  assert.equal(clock(time, 'Europe/Berlin', 'en-GB'), '01:10:05');
  assert.equal(clock(time, 'Nowhere/Land', 'en-GB'), '00:10:05', 'a zone that is not known is UTC');
  assert.equal(tickLabel(time, 300, 'UTC', 'en-GB'), '00:10');
  assert.equal(tickLabel(time, 10, 'UTC', 'en-GB'), '00:10:05');
  assert.match(tickLabel(time, 86400, 'UTC', 'en-GB'), /22 Nov/);
  assert.equal(zoneOf({ zone: 'machine' }, { tz: 'Asia/Tokyo' }), 'Asia/Tokyo');
  assert.equal(zoneOf({ zone: 'utc' }, null), 'UTC');
  assert.equal(zoneOf({ zone: 'browser' }, null), undefined);
});
