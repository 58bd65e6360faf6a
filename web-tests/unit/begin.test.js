// What is in sight: labels of the time axis keep apart, and lines have points for the screen that they are on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apart, tickSpace } from '../../crates/serve/assets/ticks.js';
import { pointsOf } from '../../crates/serve/assets/time.js';

test('labels that would touch are left out, whichever way time runs', () => {
  const labels = (...middles) => middles.map((middle) => ({ text: `${middle}`, middle, width: 40 }));
  for (const [middles, expect] of [
    [[50, 100, 150], ['50', '100', '150']],
    [[50, 97, 150], ['50', '', '150']],
    [[10, 100, 190], ['', '100', '']],
    [[150, 100, 50], ['150', '100', '50']],
    [[150, 103, 50], ['', '103', '50']],
    [[], []],
  ])
    assert.deepEqual(apart(labels(...middles), 0, 200), expect, String(middles));
});

test('ticks of seconds have more room than ticks of minutes', () => {
  const widths = { long: 60, short: 30 };
  assert.equal(tickSpace(60, 300, widths), 76);
  assert.equal(tickSpace(3600, 300, widths), 46);
  assert.ok(Number.isFinite(tickSpace(3600, 0, widths)));
});

test('an hour has as many points as a chart has pixels, a quarter of an hour all its seconds', () => {
  for (const [length, width, ratio, expect] of [[900, 1440, 1, 920], [3600, 1440, 1, 400], [3600, 1440, 2, 720], [3600, 5000, 3, 920], [86400, 360, 1, 400]])
    assert.equal(pointsOf({ from: 0, thru: length }, { width, ratio }), expect, `${length} ${width}`);
});
