import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapOf, readNeighbours } from '../../crates/serve/assets/neighbours.js';

const row = (instance, ifName, lldpRemSysName, lldpRemPortId, more = {}) => ({ metric: { instance, ifName, lldpRemSysName, lldpRemPortId, ...more }, value: [0, '1'] });
const rate = (instance, ifName, value) => ({ metric: { instance, ifName }, value: [0, value] });

test('neighbours have the traffic of their own ports, in the order of devices and ports', () => {
  const list = [row('b', 'e10', 'x', '1'), row('b', 'e9', '', '2', { lldpRemChassisId: '00:1b' }), row('a', 'e1', 'b-name', 'e9', { sysName: 'a-name' })];
  const found = readNeighbours(list, [rate('b', 'e9', '8000'), rate('a', 'e9', '1')], [rate('b', 'e9', '0')]);
  assert.deepEqual(found.map(({ device, port, neighbour, in: ins, out }) => [device, port, neighbour, ins, out]), [
    ['a', 'e1', 'b-name', null, null],
    ['b', 'e9', '00:1b', 8000, 0],
    ['b', 'e10', 'x', null, null],
  ]);
});

test('a line that both devices list is on the map once, with the traffic that is known', () => {
  const list = [row('a', 'e1', 'b', 'e2', { sysName: 'a' }), row('b', 'e2', 'a', 'e1', { sysName: 'b' }), row('b', 'e3', 'a', 'e4', { sysName: 'b' })];
  const { names, lines } = mapOf(readNeighbours(list, [rate('b', 'e2', '2000000')], []));
  assert.deepEqual(names, ['a', 'b']);
  assert.deepEqual(lines.map(({ ends, ports, label }) => [ends, ports, label]), [
    [[1, 0], ['e2', 'e1'], 'in 2000.0 kb/s, out –'],
    [[1, 0], ['e3', 'e4'], ''],
  ]);
  assert.deepEqual(mapOf([]), { names: [], lines: [] });
});
