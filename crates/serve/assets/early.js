// Asks for the first numbers while the rest of the page is still on its way: they are what is waited for.
import { createApi } from './api.js';
import { PANELS, chosen, fieldsOf } from './panels.js';
import { parse } from './state.js';
import { visible } from './time.js';

/** Enough for 15 minutes of seconds, and more than the pixels of a chart in a row of charts. */
export const POINTS = 920;

export const api = createApi();

/** Before the first answer the server's own clock is the only one that is right: a live range is relative to it. */
export function question(fields, view, edge, points = POINTS) {
  const range =
    edge === null && view.live
      ? { from: -Math.round(view.thru - view.from), thru: 'now' }
      : { from: view.from, thru: view.thru };
  return { fields, ...range, points };
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
