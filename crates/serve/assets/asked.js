// The chart of what expressions answered: one card for as long as the series are the same, so that what is hidden stays
// hidden and nothing flickers. It draws the range that was asked for.
import { createCard } from './card.js';
import { frameOf, namesOf } from './promql-answer.js';

/** Draws into `host`. */
export function createAsked(ctx, host) {
  const asked = { ctx, host, card: null, frame: null, range: null, known: '' };
  new ResizeObserver(() => asked.card?.resize()).observe(host);
  return {
    set: (panel, matrix, range, names) => set(asked, panel, matrix, range, names),
    draw: () => draw(asked),
    moments: () => moments(asked),
    card: () => asked.card,
    frame: () => asked.frame,
  };
}

/** `panel`: its id, title and unit; `names` of the lines, where they have other ones than their labels. */
function set(asked, panel, matrix, range, given) {
  const { ctx, host } = asked;
  asked.range = range;
  asked.frame = frameOf(matrix, range, panel.unit);
  const { shared, names } = given ? { shared: '', names: given } : namesOf(matrix.map(({ metric }) => metric));
  const known = JSON.stringify([panel.title, shared, names]);
  if (known !== asked.known || !asked.card) {
    asked.known = known;
    asked.card?.destroy();
    const layers = names.map((label, n) => ({ id: `#${n}`, label, colour: n + 1 }));
    const on = { hover: ctx.hoverAt, pick: ctx.pick, select: ctx.zoomTo, pan: ctx.panBy, zoom: ctx.zoomBy };
    asked.card = createCard({ ...panel, note: shared, least: 0, layers }, ctx, { ...on, back: ctx.zoomBack });
    host.replaceChildren(asked.card.element);
  }
  draw(asked);
}

function draw(asked) {
  const { ctx, card, frame, range, host } = asked;
  if (!card || document.hidden || host.closest('[hidden]')) return;
  const seen = ctx.view();
  // a live chart ends where its numbers do
  const thru = seen.live ? Math.max(range.end, range.start + range.step) : seen.thru;
  const from = seen.live ? thru - (seen.thru - seen.from) : seen.from;
  card.draw(frame, { ...seen, from, thru }, card.size());
  moments(asked);
}

function moments({ ctx, card, frame, host }) {
  if (card && !host.closest('[hidden]')) card.moments({ cursor: ctx.hover, a: ctx.state.at, b: ctx.state.b }, frame);
}
