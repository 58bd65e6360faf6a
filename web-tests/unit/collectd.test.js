// Charts of a host by what collectd's plugins mean, its problems, and the overview of all fields.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slices } from '../../crates/serve/assets/api.js';
import { fullOf, hostPanels } from '../../crates/serve/assets/collectd.js';
import { fieldsOf } from '../../crates/serve/assets/panels.js';
import { problemsOf } from '../../crates/serve/assets/problems.js';
import { overview } from '../../crates/serve/assets/search.js';
import { readStored } from '../../crates/serve/assets/stored.js';
import { SUBSYSTEMS } from '../fixture/machine.js';
import { accounts, stored } from '../fixture/senders.js';

const { fields } = readStored(stored({ web1: 100, web2: 100 }, 100));
const panels = hostPanels(fields, 'web1');
const panel = (title) => panels.find((each) => each.title === title);

test('a host of collectd has charts by what its plugins mean', () => {
  assert.deepEqual(panels.slice(0, 7).map(({ title }) => title), ['CPU', 'Load', 'Memory', 'File systems', 'eth0', 'lo', 'sda']);
  assert.deepEqual(panel('CPU').layers.map(({ label }) => label), ['user', 'system', 'wait']);
  assert.deepEqual(panel('CPU').split.layers.map(({ label }) => label), ['0', '1']);
  assert.deepEqual(panel('Load').layers.map(({ label }) => label), ['1 min', '5 min', '15 min']);
  assert.deepEqual(panel('Memory').layers.map(({ label }) => label), ['programs', 'buffers', 'cached', 'free']);
  assert.deepEqual(panel('eth0').layers.map(({ id }) => id), ['@web1/interface-eth0/if_octets.rrd:rx', '@web1/interface-eth0/if_octets.rrd:tx']);
  assert.ok(panel('CPU').stacked && panel('Memory').stacked && panel('eth0').filled);
  // each series is asked for but what df counts neither as used nor as free, and none of another host
  const asked = fieldsOf(panels);
  assert.deepEqual([...asked].sort(), fields.filter(({ host, name }) => host === 'web1' && name !== 'df_complex-reserved').map(({ id }) => id).sort());
});

test('shares are of their whole, and nothing where nothing is known', () => {
  const known = new Map();
  for (const { id, host } of fields) if (host === 'web1') known.set(id, { id, avg: [id.includes('idle') ? 70 : 10, null] });
  for (const [part, size] of [['used', 95], ['free', 5], ['reserved', 7]]) known.get(`@web1/df-var/df_complex-${part}.rrd:value`).avg = [size, null];
  const frame = { count: 2, fields: known };
  panel('CPU').add(frame);
  panel('File systems').add(frame);
  panel('CPU').split.add(frame);
  const avg = (id) => frame.fields.get(id).avg;
  assert.deepEqual(avg('@web1/cpu-all/share-user:value'), [10, null]);
  assert.deepEqual(avg('@web1/cpu-all/busy-1:value'), [30, null]);
  assert.deepEqual(avg('@web1/df-all/used-var:value'), [95, null]);
  assert.deepEqual(fullOf(frame, 'web1'), [{ text: 'file system var is 95 % full' }]);
  assert.deepEqual(fullOf(frame, 'web2'), []);
});

test('other names than those of the usual plugins have charts as before, and none is lost', () => {
  const odd = readStored({ series: [['h/cpu-0/own-user.rrd', 0, 1], ['h/df/df-root.rrd', 1, 1], ['h/memory/percent-used.rrd', 0, 1], ['h/load/x.rrd', 0, 1]], definitions: [{ step: 10, columns: [{ name: 'value', unit: '' }] }, { step: 10, columns: [{ name: 'used', unit: 'B' }, { name: 'free', unit: 'B' }] }] });
  const made = hostPanels(odd.fields, 'h');
  assert.deepEqual(made.map(({ title }) => title), ['Memory', 'File systems', 'h cpu-0 own-user', 'h load x']);
  assert.equal(made[0].most, 100);
  assert.deepEqual(fieldsOf(made).sort(), odd.fields.map(({ id }) => id).sort());
  assert.deepEqual(hostPanels([], 'h'), []);
});

test('problems of a host: silent, what stands of its notifications, clock, losses', () => {
  const hosts = { web1: 1000 };
  const listed = readStored(stored(hosts, 90000)).hosts;
  const marks = [
    { time: 10, kind: 'failure', text: 'web1/load/load: high', host: 'web1' },
    { time: 20, kind: 'okay', text: 'web1/load/load: low', host: 'web1' },
    { time: 30, kind: 'warning', text: 'web1/df-var/df: <b>full', host: 'web1' },
    { time: 40, kind: 'failure', text: 'web2/df-var/df: full', host: 'web2' },
  ];
  const found = problemsOf('web1', listed, accounts(hosts, 90000), marks);
  assert.deepEqual(found.map(({ text }) => text), ['silent: the last values came 1 d ago', 'warning: web1/df-var/df: <b>full']);
  assert.deepEqual(problemsOf('web1', listed, accounts(hosts, 1005), []), []);
  assert.deepEqual(problemsOf('nobody', listed, accounts(hosts, 1005), []), []);
});

test('many fields are several questions, each short enough for a proxy, and none is lost', () => {
  const ids = (count, length) => Array.from({ length: count }, (_, n) => `@${'x'.repeat(length)}${n}:value`);
  for (const [count, length, expect] of [[0, 1, 1], [1, 9000, 1], [2, 9000, 2], [300, 1, 1], [1200, 1, 4], [100, 100, 2]]) {
    const parts = slices(ids(count, length));
    assert.equal(parts.length, expect, `${count} ${length}`);
    assert.deepEqual(parts.flat(), ids(count, length));
    assert.ok(parts.every((part) => part.length <= 1 || (part.length <= 500 && encodeURIComponent(part.join()).length <= 6000)));
  }
});

test('the overview has a chart of each subsystem that is recorded, of one unit', () => {
  const found = overview(SUBSYSTEMS);
  assert.deepEqual(found.map(({ title }) => title), ['cpu', 'memory', 'disk', 'net', 'pressure']);
  assert.deepEqual(found[2].layers.map(({ id }) => id), ['disk.reads', 'disk.writes']);
});
