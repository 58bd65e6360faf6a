import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf } from '../../crates/serve/assets/blocking.js';
import { fieldsOf } from '../../crates/serve/assets/panels.js';
import { addParts, kindsOf, labelled, panelsOf, serversOf } from '../../crates/serve/assets/postgres-panels.js';

const slot = (pid, since, blocked_by = [], state = 'active') => ({ slot: pid, pid, since, state, blocked_by });
const shown = (slots) => treeOf(slots).map(({ slot: { pid }, depth, holds }) => `${'.'.repeat(depth)}${pid}${holds ? `+${holds}` : ''}`);

test('who holds up most comes first, with those that wait below', () => {
  assert.deepEqual(shown([slot(1, 5), slot(2, 6, [9]), slot(3, 7, [2]), slot(9, 8, [], 'idle in transaction'), slot(8, 1, [], 'idle')]), ['9+2', '.2+1', '..3', '1']);
});

test('who waits for a session that is not shown stands alone, and a circle ends', () => {
  assert.deepEqual(shown([slot(1, 5, [77]), slot(2, 6, [1, 3])]), ['1+1', '.2']);
  assert.deepEqual(shown([slot(1, 1, [2]), slot(2, 2, [1])]), ['1+1', '.2']);
  assert.deepEqual(shown([slot(1, 1, [1])]), ['1']);
});

const series = (text) => [`{${text}}`, 0, 1];
const ANSWER = {
  series: [
    series('field="xact_commit",job="postgres",server="a"'),
    series('database="shop",field="xact_commit",job="postgres",server="a"'),
    series('field="blks_hit",job="postgres",server="a"'),
    series('field="blks_read",job="postgres",server="a"'),
    series('field="connections",job="postgres",server="a",state="idle"'),
    series('field="connections",job="postgres",server="a",state="active"'),
    series('field="max_connections",job="postgres",server="a"'),
    series('field="xact_commit",job="postgres",server="b\\"c"'),
    series('field="commands_total",job="programs",kind="update",publisher="postgresql",user="p"'),
    series('field="commands_total",job="programs",kind="select",publisher="postgresql",user="p"'),
    ['host/load/load.rrd', 0, 1],
  ],
};

test('charts are of the server that is chosen, over all its databases', () => {
  const all = labelled(ANSWER);
  assert.deepEqual(serversOf(all), ['a', 'b"c']);
  const panels = panelsOf(all, 'a');
  assert.deepEqual(panels.map(({ id }) => id), ['pgcommands', 'pgtransactions', 'pgconnections', 'pghit', 'pgblocks']);
  const of = (id) => panels.find((panel) => panel.id === id);
  assert.deepEqual(of('pgcommands').layers.map(({ label }) => label), ['select', 'update']);
  assert.deepEqual(of('pgtransactions').layers.map(({ id }) => id), ['@{field="xact_commit",job="postgres",server="a"}:value']);
  assert.deepEqual(of('pgconnections').layers.map(({ label }) => label), ['active', 'idle']);
  assert.equal(of('pgconnections').peak, '@{field="max_connections",job="postgres",server="a"}:value');
  assert.ok(fieldsOf(panels).every((id) => !id.includes('"hit"')), 'what is computed is not asked for');
});

test('hits are a part of blocks where both are known', () => {
  const panels = panelsOf(labelled(ANSWER), 'a');
  const [{ id, parts }] = panels.find((panel) => panel.id === 'pghit').layers;
  const fields = new Map([
    [parts[0], { avg: [3, null, 0, 5] }],
    [parts[1], { avg: [1, 1, 0, null] }],
  ]);
  addParts({ fields }, panels);
  assert.deepEqual(fields.get(id).avg, [75, null, null, null]);
});

test('kinds of commands come in their order, with what is timed of them', () => {
  const metric = (name, kind, more) => ({ name, labels: { kind }, value: 1, rate: 2, ...more });
  const metrics = [metric('commands_total', 'update'), metric('commands_total', 'select'), metric('commands_total', 'other', { value: 0 }), metric('command_seconds', 'select', { quantiles: { 0.5: 0.1 }, samples: 7 })];
  assert.deepEqual(kindsOf({ metrics }).map(({ kind, samples }) => [kind, samples]), [['select', 7], ['update', 0]]);
});
