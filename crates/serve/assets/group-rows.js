// Control groups as numbers: tree, list, which use most, what they are called in short. No elements here.
import { order } from './rows.js';

/** From the answer of /groups: one object a group. */
export function groupsOf({ columns, rows }) {
  const names = columns.map((column) => column.name);
  return rows.map((values) => Object.fromEntries(names.map((name, n) => [name, values[n]])));
}

/** The group that a path lies in: `/a` of `/a/b`, `/` of `/a`, none of `/`. */
export const parentOf = (path) => (path === '/' ? null : path.slice(0, path.lastIndexOf('/')) || '/');

const lastPart = (path) => (path === '/' ? path : path.slice(path.lastIndexOf('/') + 1));

const SEARCHED = ['group', 'name', 'image', 'pod', 'namespace'];

/** A flat list of lines `{row, depth, name}`: those with the text in their paths; in a tree those above them, too. */
export function groupLines(rows, { filter = '', sort, listed }) {
  const by = byPath(order(sort));
  const wanted = filter.toLowerCase();
  const kept = rows.filter((row) => SEARCHED.some((name) => row[name]?.toLowerCase().includes(wanted)));
  if (listed) return kept.sort(by).map((row) => ({ row, depth: 0, name: row.group }));
  const all = new Map(rows.map((row) => [row.group, row]));
  const seen = new Set();
  for (const row of kept) for (let path = row.group; path && !seen.has(path); path = parentOf(path)) seen.add(path);
  const children = new Map();
  const roots = [];
  for (const path of [...seen].filter((each) => all.has(each))) {
    const parent = nearest(parentOf(path), all);
    if (parent === null) roots.push(all.get(path));
    else if (children.has(parent)) children.get(parent).push(all.get(path));
    else children.set(parent, [all.get(path)]);
  }
  const lines = [];
  const below = (list, depth) => {
    for (const row of list.sort(by)) {
      const parent = nearest(parentOf(row.group), all);
      lines.push({ row, depth, name: parent === null ? row.group : under(row.group, parent) });
      below(children.get(row.group) ?? [], depth + 1);
    }
  };
  below(roots, 0);
  return lines;
}

/** A group may have no row (of version 1, none of its files): the next above it that has. */
function nearest(path, all) {
  let found = path;
  while (found !== null && !all.has(found)) found = parentOf(found);
  return found;
}

const under = (path, parent) => path.slice(parent === '/' ? 1 : parent.length + 1);

/** What sorts alike stands in the order of the paths. */
const byPath = (by) => (one, other) => by(one, other) || one.group.localeCompare(other.group);

/** The groups that have none below them and the most of a column: those above have the same numbers and more. */
export function usual(rows, sort, most) {
  const column = sort.replace(/^-/, '');
  const name = rows.some((row) => typeof row[column] === 'number') ? column : 'cpu';
  return rows
    .filter((row) => row.groups === 1)
    .sort(byPath(order(`-${name}`)))
    .slice(0, most)
    .map((row) => row.group);
}

/** The name of a container, else the last part of each path, where that tells it from the others, else all of it. */
export function shortNames(paths, rows) {
  const called = new Map((rows ?? []).map((row) => [row.group, row.container]));
  const lastOf = (path) => called.get(path) || lastPart(path);
  const count = new Map();
  for (const path of paths) count.set(lastOf(path), (count.get(lastOf(path)) ?? 0) + 1);
  return paths.map((path) => (count.get(lastOf(path)) === 1 ? lastOf(path) : path));
}
