import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busiest, linesOf, matches, order, rowsOf } from '../../crates/serve/assets/rows.js';
import { change, compared, join } from '../../crates/serve/assets/compared.js';

const columns = ['pid', 'thread', 'ppid', 'comm', 'pct', 'rss', 'rkb', 'wkb', 'majf', 'minf', 'key'].map((name) => ({ name }));
const answer = (...rows) => ({ columns, rows });
const INIT = [1, '', 0, 'init', 0, 100, 0, 0, 0, 0, '5'];
const SHELL = [9, '', 1, 'bash', 2, 300, 0, null, 0, 0, '5'];
const BUILD = [20, '', 9, 'cc1', 97, 900, 40, 2, 0, 9, '7'];
const THREAD = [21, '+', 20, 'cc1', 50, 900, 0, 0, 0, 0, '7'];
const KERNEL = [2, '', 0, 'kthreadd', null, 0, null, null, null, null, '1'];
const rows = () => rowsOf(answer(INIT, SHELL, BUILD, THREAD, KERNEL));
const names = (lines) => lines.map(({ row, depth }) => '·'.repeat(depth) + row.comm);

test('rows: threads are left out, sums know what is not known', () => {
  assert.deepEqual(rows().map((row) => [row.comm, row.io]), [['init', 0], ['bash', 0], ['cc1', 42], ['kthreadd', null]]);
});

test('sort: unknown last either way, texts as people count', () => {
  assert.deepEqual(rows().sort(order('-pct')).map((row) => row.comm), ['cc1', 'bash', 'init', 'kthreadd']);
  assert.deepEqual(rows().sort(order('pct')).map((row) => row.comm), ['init', 'bash', 'cc1', 'kthreadd']);
  assert.deepEqual([{ comm: 'k10', pid: 1 }, { comm: 'k9', pid: 2 }].sort(order('comm')).map((row) => row.comm), ['k9', 'k10']);
});

test('filter: names in either case, a number is a pid', () => {
  const cases = [['CC', true], ['20', true], ['2', false], ['', true], ['bash', false]];
  for (const [wanted, expected] of cases) assert.equal(matches({ pid: 20, comm: 'cc1' }, wanted), expected, wanted);
  assert.ok(matches({ pid: 1, comm: 'x', cgroup: '/user.slice' }, 'user'));
});

test('tree: children below parents; what matches keeps its parents', () => {
  assert.deepEqual(names(linesOf(rows(), { sort: '-pct', group: 'tree' })), ['init', '·bash', '··cc1', 'kthreadd']);
  assert.deepEqual(names(linesOf(rows(), { sort: '-pct', group: 'tree', filter: 'cc1' })), ['init', '·bash', '··cc1']);
});

test('tree: a circle of parents ends', () => {
  const circle = rowsOf(answer([1, '', 2, 'a', 0, 0, 0, 0, 0, 0, ''], [2, '', 1, 'b', 0, 0, 0, 0, 0, 0, '']));
  assert.ok(linesOf(circle, { sort: 'pid', group: 'tree' }).length <= 2);
});

test('groups: sums, largest first', () => {
  const lines = linesOf(rowsOf(answer(INIT, BUILD, [22, '', 9, 'cc1', 3, 100, 0, 0, 0, 0, '8'])), { sort: '-pct', group: 'comm' });
  assert.deepEqual(lines.map(({ row, label, count }) => [label ?? row.comm, count ?? 0, row.pct, row.rss]), [['cc1', 2, 100, 1000], ['cc1', 0, 97, 900], ['cc1', 0, 3, 100], ['init', 1, 0, 100], ['init', 0, 0, 100]]);
});

test('the busiest are added up by name', () => {
  assert.deepEqual(busiest([{ comm: 'cc1', pct: 5 }, { comm: 'x', pct: 7 }, { comm: 'cc1', pct: 4 }, { comm: 'idle', pct: 0 }, { comm: 'n', pct: null }], 2), [{ name: 'cc1', count: 2, pct: 9 }, { name: 'x', count: 1, pct: 7 }]);
});

// a pid can be used again within a minute: the key tells
test('a pid used again is another process', () => {
  const pairs = join(rowsOf(answer(BUILD)), rowsOf(answer([20, '', 9, 'cc1', 97, 900, 0, 0, 0, 0, '8'])));
  assert.deepEqual(pairs.map(({ before, after }) => [Boolean(before), Boolean(after)]), [[true, false], [false, true]]);
});

test('what is not known on a side is no change', () => {
  assert.equal(change({ before: { pct: null }, after: { pct: 5 } }, 'pct'), null);
  assert.equal(change({ before: null, after: { pct: 5 } }, 'pct'), 5);
});

test('comparison: both sides, the change, and the fate', () => {
  const found = compared(rowsOf(answer(INIT, SHELL)), rowsOf(answer(INIT, BUILD)));
  assert.deepEqual(found.map((row) => [row.comm, row.fate, row.pct_a, row.pct_b, row.pct]), [['init', '', 0, 0, 0], ['bash', 'ended', 2, null, -2], ['cc1', 'born', null, 97, 97]]);
});
