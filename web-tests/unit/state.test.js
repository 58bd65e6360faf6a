import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, write } from '../../crates/serve/assets/state.js';

test('every view is an address and back', () => {
  const states = [
    {},
    { view: 'fields', fields: [['cpu.user', 'cpu.sys'], ['disk.read_kb:*']] },
    { view: 'fields', fields: [['disk.read_kb:sd~a|b!c', 'net.rx_kb:%s,&=:*<b>']] },
    { range: 3600, at: 1795300000.5, sort: '-pct', filter: 'cc1 & "friends" <b>', group: 'tree' },
    { range: 'all', split: ['cpu', 'disk'], hide: ['busy.sd~|!x', 'cpu.nice'] },
    { from: 1795300000, thru: 1795300100, at: 1795300050, b: 1795300060 },
    { view: 'raw', source: 'proc/1/stat', q: 'disk wait' },
  ];
  for (const state of states) assert.deepEqual(parse(write(state)), state, JSON.stringify(state));
});

test('what makes no sense is left out', () => {
  const cases = [
    ['?range=-5', {}], ['?range=x', {}], ['?from=10', {}], ['?from=20&thru=10', {}], ['?view=admin', {}], ['?what=ever', {}], ['?at=1e999', {}],
    ['?from=10&thru=20&range=60', { from: 10, thru: 20 }], ['?__proto__=x', {}], ['?constructor=x', {}], [`?at=${'9'.repeat(400)}`, {}], ['?fields=%7C%7C', { fields: [] }],
  ];
  for (const [search, expected] of cases) assert.deepEqual(parse(search), expected, search);
});
