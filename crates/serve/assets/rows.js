// The process table as numbers: sort, filter, tree, groups. No elements here.

/** From the answer of /processes: one object a process; threads are left to their process. */
export function rowsOf(answer) {
  const names = answer.columns.map((column) => column.name);
  const rows = [];
  for (const values of answer.rows) {
    const row = {};
    for (let n = 0; n < names.length; n++) row[names[n]] = values[n];
    // a process is a pid and when it was born
    row.id = `${row.pid} ${row.key ?? ''}`;
    row.io = sum(row.rkb, row.wkb);
    row.faults = sum(row.majf, row.minf);
    if (row.thread !== '+') rows.push(row);
  }
  return rows;
}

const sum = (a, b) => (a === null && b === null ? null : a === undefined ? undefined : (a ?? 0) + (b ?? 0));
const SEARCHED = ['comm', 'command', 'user', 'cgroup'];

export function matches(row, wanted) {
  if (!wanted) return true;
  const text = wanted.toLowerCase();
  return (
    String(row.pid) === wanted ||
    SEARCHED.some((name) =>
      String(row[name] ?? '')
        .toLowerCase()
        .includes(text),
    )
  );
}

/** `-x` is largest first for numbers and from the end for texts; what is not known comes last. */
export function order(sort) {
  const turned = sort.startsWith('-');
  const name = turned ? sort.slice(1) : sort;
  const sign = turned ? -1 : 1;
  return (one, other) => {
    const a = one[name],
      b = other[name];
    const lacking = (a === null || a === undefined) - (b === null || b === undefined);
    if (lacking) return lacking;
    const differ = typeof a === 'string' ? a.localeCompare(String(b), undefined, { numeric: true }) : a - b;
    return sign * differ || one.pid - other.pid;
  };
}

/** A flat list of lines `{row, depth, label, count}` as the reader has chosen. */
export function linesOf(rows, { filter, sort, group }) {
  const kept = rows.filter((row) => matches(row, filter));
  const by = order(sort);
  if (group === 'tree') return tree(rows, kept, by);
  if (group) return groups(kept, group, by);
  return kept.sort(by).map((row) => ({ row, depth: 0 }));
}

/** Children below their parents; the parents of what matches stay, so that a match shows where it belongs. */
function tree(rows, kept, by) {
  const all = new Map(rows.map((row) => [row.pid, row]));
  const wanted = new Set();
  for (const row of kept) for (let one = row; one && !wanted.has(one.pid); one = all.get(one.ppid)) wanted.add(one.pid);
  const children = new Map();
  const roots = [];
  for (const row of rows) {
    if (!wanted.has(row.pid)) continue;
    if (!wanted.has(row.ppid) || row.ppid === row.pid) roots.push(row);
    else if (children.has(row.ppid)) children.get(row.ppid).push(row);
    else children.set(row.ppid, [row]);
  }
  const lines = [];
  const seen = new Set();
  const below = (list, depth) => {
    for (const row of list.sort(by)) {
      if (seen.has(row.pid)) continue;
      seen.add(row.pid);
      lines.push({ row, depth });
      below(children.get(row.pid) ?? [], depth + 1);
    }
  };
  below(roots, 0);
  return lines;
}

const SUMMED = ['pct', 'rss', 'swap', 'rkb', 'wkb', 'io', 'majf', 'minf', 'faults', 'accum', 'syst', 'usrt', 'threads'];

/** Processes added up by a name; each group line is followed by its processes. */
function groups(rows, name, by) {
  const found = new Map();
  for (const row of rows) {
    const label = String(row[name] ?? '') || '(none)';
    if (!found.has(label)) found.set(label, []);
    found.get(label).push(row);
  }
  const heads = [...found].map(([label, members]) => {
    const head = { pid: -1, comm: label, [name]: label };
    for (const column of SUMMED)
      head[column] = members.reduce(
        (total, row) => (row[column] === undefined ? total : sum(total ?? null, row[column])),
        undefined,
      );
    return { row: head, members, label, count: members.length };
  });
  return heads
    .sort((a, b) => by(a.row, b.row))
    .flatMap(({ row, members, label, count }) => [
      { row, depth: 0, label, count },
      ...members.sort(by).map((member) => ({ row: member, depth: 1 })),
    ]);
}

/** Who used most CPU, by name, as most work is done by several processes of one name. */
export function busiest(rows, most) {
  const found = new Map();
  for (const { comm, pct } of rows) {
    if (!(pct > 0)) continue;
    const one = found.get(comm) ?? { name: comm, count: 0, pct: 0 };
    found.set(comm, { name: comm, count: one.count + 1, pct: one.pct + pct });
  }
  return [...found.values()].sort((a, b) => b.pct - a.pct).slice(0, most);
}
