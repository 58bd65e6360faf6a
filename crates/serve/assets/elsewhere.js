// A board without any number in its range: when there are numbers, and the way there. Names and messages are text.
import { h } from './dom.js';
import { isStored } from './stored.js';
import { ago, span, stamp } from './time.js';

/** A part of the range that stays free behind the newest value. */
const AIR = 0.05;

/** The newest stamp of stored series, by their names in the answer of /stored. */
export function newestOf(ids, series) {
  const names = new Set(ids.map((id) => id.slice(1, id.lastIndexOf(':'))));
  const stamps = series.filter(([name, , last]) => last !== null && names.has(name)).map(([, , last]) => last);
  return stamps.length ? Math.max(...stamps) : null;
}

/** The nearest moment with numbers outside of a view; null where there is none or it is not known. */
export async function elsewhere(ctx, ids, view) {
  const stored = ids.filter(isStored);
  if (stored.length < ids.length) return besideRecording(ctx.status, view);
  if (!stored.length) return null;
  const { series } = await ctx.api.get('stored');
  const newest = newestOf(stored, series);
  return newest === null || (newest > view.from && newest <= view.thru) ? null : newest;
}

function besideRecording(status, view) {
  if (!status?.from || !status.thru) return null;
  if (view.thru <= status.from) return status.from + (view.thru - view.from) / 2;
  return view.from >= status.thru ? status.thru : null;
}

/** Words, and a button that shows a range as long as this one that ends at the moment. */
export function elsewhereNote(ctx, moment, view) {
  const length = view.thru - view.from;
  const thru = moment + length * AIR;
  const { locale } = ctx.settings;
  const when = stamp(moment, ctx.zone(), locale);
  const edge = ctx.edge ?? Date.now() / 1000;
  const past = moment < view.from;
  const some = past ? 'The newest before are' : 'There are some';
  const words = `No values in these ${span(length)}. ${some} of ${when}, ${ago(moment, edge)}.`;
  // what others sent may be older than this machine's recording
  const there = { range: undefined, from: thru - length, thru: Math.min(thru, Math.max(edge, moment)) };
  const go = h('button', { class: 'main', onclick: () => ctx.set(there, { soon: true }) }, 'Go there');
  return [h('span', {}, words), ' ', go];
}
