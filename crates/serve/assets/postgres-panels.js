// Which charts the view of PostgreSQL has, of which stored series. No elements here.

/** Commands in the order in which they are shown; others come behind. */
const KINDS = ['select', 'insert', 'update', 'delete', 'utility', 'other'];
const STATES = ['active', 'idle in transaction', 'idle in transaction (aborted)', 'idle', 'unknown'];
/** What is computed here: the part of blocks that were found in shared buffers. */
const HIT = '@{field="hit",job="page"}:value';

/** Series named by label sets: their ids and their labels. */
export function labelled({ series }) {
  const found = [];
  for (const [name] of series) {
    if (!name.startsWith('{')) continue;
    const labels = {};
    for (const [, label, value] of name.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[label] = value.replace(/\\(.)/g, (_, letter) => (letter === 'n' ? '\n' : letter));
    found.push({ id: `@${name}:value`, labels });
  }
  return found;
}

const isPublished = ({ labels }) => labels.job === 'programs' && labels.publisher === 'postgresql';
/** What a server calls itself in its series: its name and port, or its port. */
const ownName = ({ server, port }) => (server && port ? `${server}:${port}` : (port ?? ''));

/**
 * Servers by their names: those that are asked, then those that only publish, with the name in their own series. A
 * server that is asked and publishes has the port of its publisher, of those that are known now.
 */
export function serversOf(all, publishers = []) {
  const servers = new Map();
  for (const { labels } of all)
    if (labels.job === 'postgres' && labels.server) servers.set(labels.server, { name: labels.server, own: null });
  const taken = new Set();
  for (const { labels, metrics } of publishers) {
    const server = servers.get(labels?.server);
    if (!server || !metrics.length) continue;
    server.own = ownName(metrics[0].labels);
    taken.add(server.own);
  }
  const own = new Set(all.filter(isPublished).map(({ labels }) => ownName(labels)));
  own.delete('');
  const [asked] = servers.values();
  // one of each: they are the same
  if (servers.size === 1 && own.size === 1) asked.own ??= [...own][0];
  else for (const name of own) if (!taken.has(name)) servers.set(`port ${name}`, { name: `port ${name}`, own: name });
  return [...servers.values()];
}

const rankIn = (list, word) => (list.indexOf(word) + list.length + 1) % (list.length + 1);

/** A layer for each value of a label, in this order. */
function each(all, field, label, order, more = {}) {
  const fits = ({ labels }) =>
    labels.field === field && label in labels && Object.entries(more).every(([name, value]) => labels[name] === value);
  const found = all.filter(fits);
  found.sort((a, b) => rankIn(order, a.labels[label]) - rankIn(order, b.labels[label]));
  return found.map(({ id, labels }, n) => ({ id, label: labels[label], colour: n + 1 }));
}

/** A layer for each of these numbers of the whole server. */
function some(all, names) {
  const layers = names.map(([field, label], n) => {
    const found = all.find(({ labels }) => labels.field === field && !labels.database && !labels.state);
    return found && { id: found.id, label, colour: n + 1 };
  });
  return layers.filter(Boolean);
}

/** The charts of a server that there are series of. Series from before servers had names are of all. */
export function panelsOf(all, server) {
  const asked = all.filter(({ labels }) => labels.job === 'postgres' && labels.server === server?.name);
  const own = all.filter((each) => isPublished(each) && server?.own && ownName(each.labels) === server.own);
  const published = own.length ? own : all.filter((each) => isPublished(each) && !ownName(each.labels));
  const panels = [
    ...commandPanels(published),
    { id: 'pgtransactions', title: 'Transactions', layers: transactions(asked, published) },
    ...sessionPanels(asked),
    ...storagePanels(asked),
  ];
  return panels.filter(({ layers }) => layers.length);
}

function commandPanels(published) {
  const latency = (quantile) => each(published, 'command_seconds', 'kind', KINDS, { quantile });
  return [
    { id: 'pgcommands', title: 'Commands', stacked: true, layers: each(published, 'commands_total', 'kind', KINDS) },
    { id: 'pgmedian', title: 'Latency', note: 'half are below', layers: latency('0.5') },
    { id: 'pgslow', title: 'Latency', note: '99 % are below', layers: latency('0.99') },
  ];
}

/**
 * The library counts transactions as they end; pg_stat_database, which backends add to when they rest, has them a
 * second late, with those of kymo itself.
 */
function transactions(asked, published) {
  const ends = each(published, 'transactions_total', 'end', ['commit', 'rollback']);
  const [commits, rollbacks] = some(asked, [
    ['xact_commit', 'committed'],
    ['xact_rollback', 'rolled back'],
  ]);
  const words = { commit: 'committed', rollback: 'rolled back' };
  const layers = ends.length
    ? ends.map((end) => ({ ...end, label: words[end.label] ?? end.label }))
    : [commits, rollbacks];
  const deadlocks = some(asked, [['deadlocks', 'deadlocks']]);
  return [...layers, ...deadlocks].filter(Boolean).map((layer, n) => ({ ...layer, colour: n + 1 }));
}

function sessionPanels(asked) {
  const [most] = some(asked, [['max_connections', '']]);
  return [
    {
      id: 'pgconnections',
      title: 'Connections',
      note: 'and their maximum',
      stacked: true,
      peak: most?.id,
      layers: each(asked, 'connections', 'state', STATES),
    },
    { id: 'pgwaiting', title: 'Waiting', note: 'active sessions by type of wait', least: 1, layers: waits(asked) },
    {
      id: 'pgoldest',
      title: 'Oldest transaction',
      least: 1,
      layers: some(asked, [['oldest_transaction_seconds', 'age']]),
    },
  ];
}

function storagePanels(asked) {
  const blocks = some(asked, [
    ['blks_hit', 'found in buffers'],
    ['blks_read', 'read'],
  ]);
  const parts = blocks.map(({ id }) => id);
  const hit = { id: HIT, label: 'found in buffers', colour: 1, parts };
  return [
    { id: 'pghit', title: 'Buffer hits', note: 'part of blocks', most: 100, layers: parts.length === 2 ? [hit] : [] },
    { id: 'pgblocks', title: 'Blocks', layers: blocks },
    {
      id: 'pgrows',
      title: 'Rows',
      layers: some(asked, [
        ['tup_fetched', 'fetched'],
        ['tup_inserted', 'inserted'],
        ['tup_updated', 'updated'],
        ['tup_deleted', 'deleted'],
      ]),
    },
    { id: 'pgwal', title: 'WAL', note: 'written', filled: true, layers: some(asked, [['wal_bytes', 'WAL']]) },
    { id: 'pgtemp', title: 'Temporary files', filled: true, layers: some(asked, [['temp_bytes', 'written']]) },
    {
      id: 'pgbuffers',
      title: 'Buffers written',
      layers: some(asked, [
        ['buffers_checkpoint', 'by checkpoints'],
        ['buffers_backend', 'by backends'],
        ['buffers_clean', 'by the background writer'],
      ]),
    },
  ];
}

function waits(asked) {
  const [locks] = some(asked, [['locks_waiting', 'locks not granted']]);
  const types = each(asked, 'waiting', 'type', ['Lock', 'LWLock', 'IO', 'Client', 'IPC', 'BufferPin', 'Timeout']);
  return locks ? [...types, { ...locks, colour: types.length + 1 }] : types;
}

/** Adds the numbers that are computed from others to a frame. */
export function addParts(frame, panels) {
  for (const { id, parts } of panels.flatMap(({ layers }) => layers)) {
    if (!parts) continue;
    const [part, rest] = parts.map((each) => frame.fields.get(each)?.avg);
    if (!part || !rest) continue;
    const avg = part.map((value, n) => {
      const sum = value + rest[n];
      return value === null || (rest[n] ?? null) === null || !(sum > 0) ? null : (value / sum) * 100;
    });
    frame.fields.set(id, { id, unit: '%', help: '', avg, min: null, max: null });
  }
}

/** Of each kind of command: how many a second, and how long they take; those of which there were some. */
export function kindsOf({ metrics }) {
  const of = (name) => new Map(metrics.filter((metric) => metric.name === name).map((one) => [one.labels.kind, one]));
  const [commands, rows, times] = [of('commands_total'), of('rows_total'), of('command_seconds')];
  return [...commands]
    .filter(([, { value }]) => value > 0)
    .sort(([a], [b]) => rankIn(KINDS, a) - rankIn(KINDS, b))
    .map(([kind, { rate, value }]) => {
      const { quantiles = {}, samples = 0 } = times.get(kind) ?? {};
      return { kind, value, rate, rows: rows.get(kind)?.rate ?? null, quantiles, samples };
    });
}
