// What is read when processes are scanned stands until the next scan.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold } from '../../crates/serve/assets/frame.js';
import { heldFor } from '../../crates/serve/assets/held.js';
import { GROUPS, MORE } from '../../crates/serve/assets/more-panels.js';
import { PANELS } from '../../crates/serve/assets/panels.js';

const frame = (values, step = 1) => ({ first: 100, step, count: values.length, covered: 100 + (values.length - 1) * step,
  fields: new Map([['sensors.celsius:0/temp1', { id: 'sensors.celsius:0/temp1', avg: values }], ['tcp.udp_in', { id: 'tcp.udp_in', avg: [1, null, null] }]]) });
const held = (values, seconds, step) => {
  const made = frame(values, step);
  hold(made, (id) => (id.startsWith('sensors.') ? seconds : 0));
  assert.deepEqual(made.fields.get('tcp.udp_in').avg, [1, null, null]);
  return made.fields.get('sensors.celsius:0/temp1').avg;
};

test('a scan stands until the next one, and not for ever', () => {
  for (const [values, seconds, step, expect] of [
    [[null, 5, null, null, 7, null], 10, 1, [null, 5, 5, 5, 7, 7]],
    [[5, null, null, null, null], 2, 1, [5, 5, 5, null, null]],
    [[5, null, null], 10, 10, [5, 5, null]],
    [[null, null, null], 10, 1, [null, null, null]],
    [[0, null, null], 10, 1, [0, 0, 0]],
  ])
    assert.deepEqual(held(values.slice(), seconds, step), expect);
  const more = frame([5, null, null, null]);
  more.covered = 101;
  hold(more, (id) => (id.startsWith('sensors.') ? 10 : 0));
  assert.deepEqual(more.fields.get('sensors.celsius:0/temp1').avg, [5, 5, null, null]);
});

test('a source has an interval of its own, or that of the scans, or none', () => {
  const seconds = (status) => {
    const of = heldFor({ status }, (name) => name !== 'cpu');
    return ['filesystems.used_percent:/', 'sensors.celsius:a', 'cpu.user'].map(of);
  };
  assert.deepEqual(seconds({ scan_interval: 5, own_intervals: { filesystems: 60, cgroups: 10 } }), [90, 7.5, 0]);
  assert.deepEqual(seconds({ scan_interval: 5 }), [7.5, 7.5, 0]);
  assert.deepEqual(seconds(undefined), [90, 90, 0]);
});

test('disk space is one of the first eight cards', () => {
  assert.ok(PANELS.slice(0, 8).some(({ id }) => id === 'filesystems'));
});

test('each card has a name of its own, and each subsystem that has none among the usual cards has one', () => {
  const ids = [...PANELS, ...MORE, ...GROUPS].map(({ id }) => id);
  assert.deepEqual(ids.filter((id, n) => ids.indexOf(id) !== n), []);
  const subsystems = [...new Set(MORE.map((panel) => panel.of))].sort();
  assert.deepEqual(subsystems, ['buddy', 'filesystems', 'infiniband', 'interrupts', 'kymo', 'nfs', 'nfs_mounts', 'numa', 'sensors', 'slab', 'tcp']);
});
