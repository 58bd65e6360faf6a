import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartTitle, chartsOf, isSilent, lineNames, orderHosts, parts, readStored, removals, searchStored, treeOf } from '../../crates/serve/assets/stored.js';

const answer = {
  series: [['db/port-1.rrd', 0, 100], ['web1/cpu-0/cpu-idle.rrd', 1, 990], ['web1/cpu-0/cpu-user.rrd', 1, 995], ['web1/cpu-1/cpu-user.rrd', 1, 995], ['alone.rrd', 1, null], ['web2/load/load.rrd', 2, null]],
  definitions: [
    { step: 300, columns: [{ name: 'rx', kind: 'DERIVE', unit: '1/s' }, { name: 'tx', kind: 'DERIVE', unit: '1/s' }] },
    { step: 10, columns: [{ name: 'value', kind: 'DERIVE', unit: '%' }] },
    { step: 0, columns: [] },
  ],
};

test('targets of the poller are fields, and of no host', () => {
  const { series, definitions } = answer;
  const { fields, hosts } = readStored({ series: [...series, ['routers/core_1.rrd', 0, 990, true], ['mrtg/a/gone_1.rrd', 0, 990]], definitions });
  assert.ok(['routers/core_1.rrd', 'mrtg/a/gone_1.rrd'].every((name) => fields.some(({ id }) => id === `@${name}:rx`)));
  assert.deepEqual(hosts.map(({ host }) => host), ['db', 'web1', 'web2']);
});

test('a name is its labels', () => {
  assert.deepEqual(parts('@web1/cpu-0/cpu-idle.rrd:value'), { host: 'web1', folder: 'cpu-0', name: 'cpu-idle', column: 'value' });
  assert.deepEqual(parts('@alone.rrd:x'), { host: '', folder: '', name: 'alone', column: 'x' });
  assert.deepEqual(parts('@a/b/c/d:e.rrd:x'), { host: 'a', folder: 'b/c', name: 'd:e', column: 'x' });
});

test('so are the labels of a set, and it is no host, whatever is in them', () => {
  const set = (kind) => `{field="commands_total",job="programs",kind="${kind}",publisher="a/\\"b\\\\",user="ada"}`;
  assert.deepEqual(parts(`@${set('read')}:value`), { host: 'a/"b\\', folder: 'programs', name: 'commands_total kind=read user=ada', column: 'value' });
  assert.deepEqual(parts('@{field="cpu.total",host="web1",job="kymo"}:value'), { host: 'web1', folder: 'kymo', name: 'cpu.total', column: 'value' });
  assert.deepEqual(parts('@{a="b"}:value'), { host: '', folder: '', name: 'a=b', column: 'value' });
  const { fields, hosts } = readStored({ series: ['read', 'write'].map((kind) => [set(kind), 1, 990]), definitions: answer.definitions });
  assert.deepEqual(hosts, []);
  assert.deepEqual(lineNames(fields.map(({ id }) => id)), ['kind=read user=ada', 'kind=write user=ada']);
  assert.equal(chartTitle(fields.map(({ id }) => id)), 'a/"b\\ programs commands_total');
});

test('lines have names for what differs', () => {
  const ids = ['@web1/cpu-0/cpu-idle.rrd:value', '@web1/cpu-0/cpu-user.rrd:value', '@web1/cpu-1/cpu-user.rrd:value'];
  assert.deepEqual(lineNames(ids), ['0 idle', '0 user', '1 user']);
  assert.equal(chartTitle(ids), 'web1 cpu');
  assert.deepEqual(lineNames(['@db/port-1.rrd:rx', '@db/port-1.rrd:tx']), ['rx', 'tx']);
  assert.deepEqual(lineNames(ids.slice(0, 1)), ['cpu-idle']);
  assert.equal(chartTitle(['@a/load/load.rrd:x', '@b/load/load.rrd:x']), 'load');
});

test('an answer is fields and hosts', () => {
  const { fields, hosts } = readStored(answer);
  assert.deepEqual(fields.map(({ id }) => id), ['@db/port-1.rrd:rx', '@db/port-1.rrd:tx', '@web1/cpu-0/cpu-idle.rrd:value', '@web1/cpu-0/cpu-user.rrd:value', '@web1/cpu-1/cpu-user.rrd:value', '@alone.rrd:value']);
  assert.deepEqual(hosts, [{ host: 'db', series: 1, last: 100, step: 300, rate: 2 / 300 }, { host: 'web1', series: 3, last: 995, step: 10, rate: 0.3 }, { host: 'web2', series: 1, last: null, step: Infinity, rate: 0 }].map((each) => ({ ...each, rate: hosts.find(({ host }) => host === each.host).rate })));
  assert.ok(Math.abs(hosts[1].rate - 0.3) < 1e-9);
});

test('silent hosts come first, the longest silent before the others', () => {
  const { hosts } = readStored(answer);
  assert.deepEqual(orderHosts(hosts, 1000).map(({ host }) => host), ['web2', 'db', 'web1']);
  assert.deepEqual(orderHosts(hosts, 1200).map(({ host }) => host), ['web2', 'db', 'web1']);
  assert.ok(!isSilent(hosts[1], 1025) && isSilent(hosts[1], 1026));
});

test('search, tree and charts of a host', () => {
  const { fields } = readStored(answer);
  assert.equal(searchStored(fields, 'web1 USER').length, 2);
  assert.equal(searchStored(fields, ' ').length, fields.length);
  assert.deepEqual([...treeOf(fields)].map(([host, folders]) => [host, [...folders.keys()]]), [['db', ['']], ['web1', ['cpu-0', 'cpu-1']], ['(no host)', ['']]]);
  assert.deepEqual(chartsOf(fields, 'web1').map((ids) => ids.length), [3]);
  assert.deepEqual(chartsOf(fields, 'db'), [['@db/port-1.rrd:rx', '@db/port-1.rrd:tx']]);
});

test('values of a chosen time can be removed by commands', () => {
  const charts = [['@web1/load/load.rrd:shortterm', '@web1/load/load.rrd:longterm', 'cpu.user'], [`@{field="it's"}:value`]];
  assert.deepEqual(removals(charts, { from: 1700000100.4, thru: 1700000200.2 }), [
    `kymo series rm 'name=web1/load/load.rrd' --from 1700000100 --thru 1700000201`,
    `kymo series rm 'name={field="it'\\''s"}' --from 1700000100 --thru 1700000201`,
  ]);
  assert.deepEqual(removals(charts, null), []);
});
