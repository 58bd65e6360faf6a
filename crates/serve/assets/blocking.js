// Who waits for whom: sessions as trees, whoever holds all others up first. No elements here.
import { flight } from './published.js';

/**
 * Sessions in flight with their depth: below each one those that wait for it. Who holds up most comes first, then who
 * waits for none that is shown, the oldest first.
 */
export function treeOf(slots) {
  const shown = flight(slots);
  const byPid = new Map(shown.map((slot) => [slot.pid, slot]));
  const below = new Map();
  const roots = [];
  for (const slot of shown) {
    const holder = (slot.blocked_by ?? []).find((pid) => byPid.has(pid) && pid !== slot.pid);
    if (holder === undefined) roots.push(slot);
    else below.set(holder, [...(below.get(holder) ?? []), slot]);
  }
  const rows = [];
  const seen = new Set();
  const visit = (slot, depth) => {
    // a deadlock is a circle for as long as it is not found
    if (seen.has(slot)) return;
    seen.add(slot);
    const row = { slot, depth, holds: 0 };
    rows.push(row);
    const before = rows.length;
    for (const next of below.get(slot.pid) ?? []) visit(next, depth + 1);
    row.holds = rows.length - before;
  };
  const weights = new Map(roots.map((slot) => [slot, weight(slot, below, new Set())]));
  roots.sort((a, b) => weights.get(b) - weights.get(a));
  for (const slot of roots) visit(slot, 0);
  for (const slot of shown) visit(slot, 0);
  return rows;
}

function weight(slot, below, seen) {
  if (seen.has(slot)) return 0;
  seen.add(slot);
  return (below.get(slot.pid) ?? []).reduce((sum, next) => sum + 1 + weight(next, below, seen), 0);
}
