// What changed between two process tables: the same question for "what changed here" and for pins A and B.

const MEASURES = [
  { name: 'pct', title: 'CPU', unit: '%', least: 1 },
  { name: 'io', title: 'Disk I/O', unit: 'KiB/s', least: 20 },
  { name: 'rss', title: 'Memory', unit: 'KiB', least: 1024 },
];

/** Joins two tables by process: `{id, row, before, after}`; one that is not there has null. */
export function join(before, after) {
  const found = new Map();
  for (const row of before) found.set(row.id, { id: row.id, row, before: row, after: null });
  for (const row of after) {
    const known = found.get(row.id);
    if (known) Object.assign(known, { row, after: row });
    else found.set(row.id, { id: row.id, row, before: null, after: row });
  }
  return [...found.values()];
}

const value = (row, name) => (row ? (row[name] ?? null) : 0);

/** The change of one measure; null where it is not known on a side. */
export function change({ before, after }, name) {
  const a = value(before, name),
    b = value(after, name);
  return a === null || b === null ? null : b - a;
}

/** The largest changes by measure, and who was born and who ended. */
export function movers(before, after, most = 5) {
  const pairs = join(before, after);
  const lists = MEASURES.map((measure) => ({ ...measure, changes: largest(pairs, measure, most) }));
  const busiest = (name) => (a, b) =>
    (b[name].pct ?? 0) - (a[name].pct ?? 0) || (b[name].rss ?? 0) - (a[name].rss ?? 0);
  const born = pairs.filter((pair) => !pair.before).sort(busiest('after'));
  const ended = pairs.filter((pair) => !pair.after).sort(busiest('before'));
  return { lists, born, ended };
}

function largest(pairs, { name, least }, most) {
  return pairs
    .map((pair) => ({
      ...pair,
      was: value(pair.before, name),
      is: value(pair.after, name),
      change: change(pair, name),
    }))
    .filter((pair) => pair.change !== null && Math.abs(pair.change) >= least)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, most);
}

/** Rows of the comparison of two moments, ready to be sorted by any of its columns. */
export function compared(before, after) {
  return join(before, after).map((pair) => {
    const row = {
      pid: pair.row.pid,
      comm: pair.row.comm,
      user: pair.row.user,
      command: pair.row.command,
      cgroup: pair.row.cgroup,
      id: pair.id,
      fate: !pair.before ? 'born' : !pair.after ? 'ended' : '',
    };
    for (const name of ['pct', 'rss', 'io']) {
      row[`${name}_a`] = pair.before ? (pair.before[name] ?? null) : null;
      row[`${name}_b`] = pair.after ? (pair.after[name] ?? null) : null;
      row[name] = change(pair, name);
    }
    row.moved = Math.abs(row.pct ?? 0);
    return row;
  });
}

/** The minute before: who there was a minute ago with its memory then, and the rates over that minute. */
export function minuteBefore(minute, old) {
  const rates = new Map(minute.map((row) => [row.id, row]));
  return old.map((row) => {
    const over = rates.get(row.id);
    return over ? { ...row, pct: over.pct, io: over.io, rkb: over.rkb, wkb: over.wkb } : row;
  });
}
