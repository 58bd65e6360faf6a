// Below the usual charts: those of what is recorded only where it is asked for (interrupts, sensors, NFS ...).
// There is a card for each that has numbers, and none that is empty.
import { createBoard } from './board.js';
import { MORE } from './more-panels.js';
import { hold } from './frame.js';
import { heldFor } from './held.js';
import { setSplit } from './split.js';

/** A server that has recorded nothing yet refuses the question with 503: the page asks again after so long. */
const AGAIN_MS = 2000;

/** The names of the subsystems that are recorded; null where the server can't tell. */
export async function recordedOf(ctx) {
  try {
    const { subsystems } = await ctx.api.get('fields');
    return new Set(subsystems.filter((each) => each.recorded).map((each) => each.name));
  } catch (error) {
    if (error.status !== 503) return null;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
    return recordedOf(ctx);
  }
}

/** Null where nothing of it is recorded. */
export function createMore(ctx, host, recorded, onMoments) {
  const panels = MORE.filter((panel) => recorded.has(panel.of));
  if (!panels.length) return null;
  const scanned = new Set(panels.filter((panel) => panel.scanned).map((panel) => panel.of));
  const held = heldFor(ctx, (name) => scanned.has(name));
  const board = createBoard(ctx, host, { add: (frame) => hold(frame, held) });
  board.onMoments(() => {
    showKnown(board);
    onMoments();
  });
  const arrange = () => setSplit(ctx, board, panels);
  arrange();
  return {
    board,
    arrange,
    sample: (sample) => {
      board.sample(sample);
      if (scanned.size && board.frame()) hold(board.frame(), held);
    },
  };
}

/** A card without any number is not there. */
function showKnown(board) {
  const frame = board.frame();
  if (!frame) return;
  for (const card of board.cards())
    card.element.hidden = !card.layers().some(({ id }) => frame.fields.get(id)?.avg.some((value) => value !== null));
}
