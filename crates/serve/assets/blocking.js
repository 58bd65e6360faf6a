// Who waits for whom: sessions as trees, whoever holds all others up first. No elements here.
import { blockersOf, flight, keyOf } from './published.js';

/**
 * Sessions in flight with their depth and how many each of them holds up: below each one those that wait for it. The
 * session that holds up most comes first, then those that wait for none that is shown, the oldest first.
 */
export function treeOf(slots) {
  const shown = flight(slots);
  const keys = new Set(shown.map(keyOf));
  const below = new Map();
  const roots = [];
  for (const slot of shown) {
    const holders = blockersOf(slot).filter((key) => keys.has(key) && key !== keyOf(slot));
    if (!holders.length) roots.push(slot);
    for (const key of holders) below.set(key, [...(below.get(key) ?? []), slot]);
  }
  const rows = [];
  const seen = new Set();
  const visit = (slot, depth) => {
    // a deadlock is a circle for as long as it is not found
    if (seen.has(slot)) return;
    seen.add(slot);
    rows.push({ slot, depth, holds: weight(slot, below) });
    for (const next of below.get(keyOf(slot)) ?? []) visit(next, depth + 1);
  };
  const weights = new Map(roots.map((slot) => [slot, weight(slot, below)]));
  roots.sort((a, b) => weights.get(b) - weights.get(a));
  for (const slot of roots) visit(slot, 0);
  for (const slot of shown) visit(slot, 0);
  return rows;
}

/** How many others wait for it, or for one that waits for it. */
function weight(slot, below) {
  const reached = new Set([slot]);
  for (const each of reached) for (const next of below.get(keyOf(each)) ?? []) reached.add(next);
  return reached.size - 1;
}
