// Below the usual charts: those of what is recorded only where it is asked for (interrupts, sensors, NFS ...).
// There is a card for each that has numbers, and none that is empty.
import { createBoard } from './board.js';
import { h } from './dom.js';
import { MORE } from './more-panels.js';
import { hold } from './frame.js';
import { setSplit } from './split.js';

/** What is read at scans of processes is shown for so many scan intervals: until the next scan, and a bit. */
const SCANS = 1.5;

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

/** Where there are no control groups in what goes on: how there would be. */
export const withoutGroups = () =>
  h(
    'p',
    { class: 'quiet' },
    'Control groups are not recorded here: ',
    h('code', {}, 'subsystems = "+g"'),
    ' below ',
    h('code', {}, '[record]'),
    ' of the configuration turns them on.',
  );

/** Null where nothing of it is recorded. */
export function createMore(ctx, host, recorded, onMoments) {
  const panels = MORE.filter((panel) => recorded.has(panel.of));
  if (!panels.length) return null;
  const scan = (ctx.status?.scan_interval ?? 60) * SCANS;
  const scanned = new Set(panels.filter((panel) => panel.scanned).map((panel) => panel.of));
  const isScanned = (id) => scanned.has(id.slice(0, id.indexOf('.')));
  const board = createBoard(ctx, host, { add: (frame) => hold(frame, isScanned, scan) });
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
      if (scanned.size && board.frame()) hold(board.frame(), isScanned, scan);
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
