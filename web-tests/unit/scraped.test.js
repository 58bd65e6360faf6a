import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orderTargets, stateOf } from '../../crates/serve/assets/scraped.js';

const target = (job, url, more = {}) => ({ job, url, seen: 1, interval: 15, duration: 0.1, samples: 5, error: '', ...more });

test('targets that fail come first, then by job and URL', () => {
  const all = [target('b', 'x'), target('a', 'z'), target('c', 'y', { error: 'away' }), target('a', 'x')];
  assert.deepEqual(
    orderTargets(all).map(({ job, url }) => job + url),
    ['cy', 'ax', 'az', 'bx'],
  );
});

test('the state of a target says why it fails', () => {
  assert.equal(stateOf(target('a', 'x')), 'up');
  assert.equal(stateOf(target('a', 'x', { error: 'no answer' })), 'down: no answer');
  assert.equal(stateOf(target('a', 'x', { seen: null })), 'not scraped yet');
});
