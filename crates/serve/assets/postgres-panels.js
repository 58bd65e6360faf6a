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

/** Names of the servers that are asked. */
export const serversOf = (all) => [
  ...new Set(all.filter(({ labels }) => labels.job === 'postgres' && labels.server).map(({ labels }) => labels.server)),
];

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

/** The charts of a server, and of what servers publish. What there are no series of has no chart. */
export function panelsOf(all, server) {
  const asked = all.filter(({ labels }) => labels.job === 'postgres' && labels.server === server);
  const published = all.filter(({ labels }) => labels.job === 'programs' && labels.publisher === 'postgresql');
  const panels = [...commandPanels(published), ...sessionPanels(asked), ...storagePanels(asked)];
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

function sessionPanels(asked) {
  const [most] = some(asked, [['max_connections', '']]);
  return [
    {
      id: 'pgtransactions',
      title: 'Transactions',
      layers: some(asked, [
        ['xact_commit', 'committed'],
        ['xact_rollback', 'rolled back'],
        ['deadlocks', 'deadlocks'],
      ]),
    },
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
