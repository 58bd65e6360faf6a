import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf } from '../../crates/serve/assets/blocking.js';
import { fieldsOf } from '../../crates/serve/assets/panels.js';
import { addParts, kindsOf, labelled, panelsOf, serversOf } from '../../crates/serve/assets/postgres-panels.js';

const slot = (pid, since, blocked_by = [], state = 'active') => ({ slot: pid, pid, since, state, blocked_by });
const shown = (slots) => treeOf(slots).map(({ slot: { pid, xid }, depth, holds }) => `${'.'.repeat(depth)}${pid || xid}${holds ? `+${holds}` : ''}`);

test('who holds up most comes first, with those that wait below', () => {
  assert.deepEqual(shown([slot(1, 5), slot(2, 6, [9]), slot(3, 7, [2]), slot(9, 8, [], 'idle in transaction'), slot(8, 1, [], 'idle')]), ['9+2', '.2+1', '..3', '1']);
});

test('whoever holds others up is shown whatever its state, and a prepared transaction as itself', () => {
  const prepared = { ...slot(0, 2, [], 'prepared'), xid: 731 };
  const waiting = { ...slot(5, 9, []), blocked_by_xids: [731, 732] };
  const rows = shown([slot(1, 5, [2, 3]), slot(2, 1, [], 'idle'), slot(3, null, [], ''), slot(4, 1, [], 'idle'), prepared, { ...prepared, xid: 732 }, waiting]);
  assert.deepEqual(rows, ['3+1', '.1', '2+1', '731+1', '.5', '732+1']);
});

test('who waits for a session that is not shown stands alone, and a circle ends', () => {
  assert.deepEqual(shown([slot(1, 5, [77]), slot(2, 6, [1, 3])]), ['1+1', '.2']);
  assert.deepEqual(shown([slot(1, 1, [2]), slot(2, 2, [1])]), ['1+1', '.2+1']);
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
  const servers = serversOf(all);
  assert.deepEqual(servers.map(({ name }) => name), ['a', 'b"c']);
  const panels = panelsOf(all, servers[0]);
  assert.deepEqual(panels.map(({ id }) => id), ['pgcommands', 'pgtransactions', 'pgconnections', 'pghit', 'pgblocks']);
  const of = (id) => panels.find((panel) => panel.id === id);
  assert.deepEqual(of('pgcommands').layers.map(({ label }) => label), ['select', 'update']);
  assert.deepEqual(of('pgtransactions').layers.map(({ id }) => id), ['@{field="xact_commit",job="postgres",server="a"}:value']);
  assert.deepEqual(of('pgconnections').layers.map(({ label }) => label), ['active', 'idle']);
  assert.equal(of('pgconnections').peak, '@{field="max_connections",job="postgres",server="a"}:value');
  assert.ok(fieldsOf(panels).every((id) => !id.includes('"hit"')), 'what is computed is not asked for');
});

test('two servers of one user have their own commands, and series from before they had names stay', () => {
  const published = (more) => series(`field="commands_total",job="programs",kind="select",${more},user="p"`);
  const asked = (server) => series(`field="xact_commit",job="postgres",server="${server}"`);
  const old = 'publisher="postgresql"';
  const [one, two] = ['port="5432",publisher="postgresql",server="15/main"', 'port="5433",publisher="postgresql"'];
  const commands = (all, server) => panelsOf(all, server).find(({ id }) => id === 'pgcommands')?.layers.map(({ id }) => id);
  const name = (more) => `@{field="commands_total",job="programs",kind="select",${more},user="p"}:value`;
  const all = labelled({ series: [published(old), published(one), published(two), asked('a')] });
  const publisher = { labels: { server: 'a', port: '5432' }, metrics: [{ labels: { kind: 'select', server: '15/main', port: '5432' } }] };
  const servers = serversOf(all, [publisher]);
  assert.deepEqual(servers.map((server) => [server.name, commands(all, server)]), [['a', [name(one)]], ['port 5433', [name(two)]]]);
  // without the library's new labels, and where there is one of each
  for (const more of [old, one]) {
    const all = labelled({ series: [published(more), asked('a')] });
    const servers = serversOf(all);
    assert.deepEqual(servers.map((server) => [server.name, commands(all, server)]), [['a', [name(more)]]]);
  }
  // nobody is asked
  const alone = labelled({ series: [published(old)] });
  assert.deepEqual([serversOf(alone), commands(alone, undefined)], [[], [name(old)]]);
});

test('transactions are those that the library counts, where it does', () => {
  const asked = ['xact_commit', 'xact_rollback', 'deadlocks'].map((field) => series(`field="${field}",job="postgres",server="a"`));
  const ended = (end) => series(`end="${end}",field="transactions_total",job="programs",port="5432",publisher="postgresql",user="p"`);
  const layers = (all) => {
    const labels = labelled({ series: all });
    const panel = panelsOf(labels, serversOf(labels)[0]).find(({ id }) => id === 'pgtransactions');
    return panel.layers.map(({ id, label, colour }) => [id.match(/(?:end|field)="(\w+)"/)[1], label, colour]);
  };
  assert.deepEqual(layers(asked), [['xact_commit', 'committed', 1], ['xact_rollback', 'rolled back', 2], ['deadlocks', 'deadlocks', 3]]);
  assert.deepEqual(layers([...asked, ended('rollback'), ended('commit')]), [['commit', 'committed', 1], ['rollback', 'rolled back', 2], ['deadlocks', 'deadlocks', 3]]);
  // a server that only publishes
  assert.deepEqual(layers([ended('commit')]), [['commit', 'committed', 1]]);
  // the first of a kind that has not ended yet
  assert.deepEqual(layers([...asked.slice(1)]), [['xact_rollback', 'rolled back', 1], ['deadlocks', 'deadlocks', 2]]);
});

test('hits are a part of blocks where both are known', () => {
  const panels = panelsOf(labelled(ANSWER), { name: 'a', own: null });
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
