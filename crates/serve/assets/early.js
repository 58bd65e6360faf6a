// Asks for the first numbers while the rest of the page is still on its way: they are what is waited for.
import { createApi } from './api.js';
import { PANELS, chosen, fieldsOf } from './panels.js';
import { parse } from './state.js';
import { pointsOf, visible } from './time.js';

export const api = createApi();

/** Points of a line in a row of charts on this screen. */
export const points = (view) => pointsOf(view, { width: innerWidth, ratio: devicePixelRatio });

/** Before the first answer the server's own clock is the only one that is right: a live range is relative to it. */
export function question(fields, view, edge, count = points(view)) {
  const range =
    edge === null && view.live
      ? { from: -Math.round(view.thru - view.from), thru: 'now' }
      : { from: view.from, thru: view.thru };
  return { fields, ...range, points: count };
}

/** The question that the Now view is going to ask; null for other views, and where a code must become a token first. */
function begin() {
  const state = parse(location.search);
  if ((state.view ?? 'now') !== 'now' || state.range === 'all' || location.hash.includes('code=')) return null;
  const fields = fieldsOf(PANELS.map((panel) => chosen(panel, state.split ?? [])));
  const asked = question(fields, visible(state, Date.now() / 1000), null);
  const answer = api.get('series', asked);
  // whoever takes the answer sees its error too
  answer.catch(() => {});
  return { key: JSON.stringify(asked), answer };
}

let first = globalThis.location ? begin() : null;

/** The answer to the first question, for who asks exactly that; once. */
export function taken(key) {
  const found = first?.key === key ? first.answer : undefined;
  first = null;
  return found;
}
