// The comparison of the process tables at pins A and B.

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
