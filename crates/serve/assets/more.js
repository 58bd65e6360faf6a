// Below the usual charts: those of what is recorded only where it is asked for (interrupts, sensors, NFS ...).
// There is a card for each that has numbers, and none that is empty.
import { createBoard } from './board.js';
import { copied } from './copied.js';
import { h } from './dom.js';
import { MORE } from './more-panels.js';
import { hold } from './frame.js';
import { heldFor } from './held.js';
import { setSplit } from './split.js';

/** A server that has recorded nothing yet refuses the question with 503: the page asks again after so long. */
const AGAIN_MS = 2000;

/** Their fields are in the table of processes. */
const OF_PROCESSES = new Set(['process']);

/** The subsystems as the server has them; null where the server can't tell. */
export async function subsystemsOf(ctx) {
  try {
    return (await ctx.api.get('fields')).subsystems;
  } catch (error) {
    if (error.status !== 503) return null;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
    return subsystemsOf(ctx);
  }
}

/** The names of those that are recorded. */
export const recordedOf = (subsystems) => new Set(subsystems.filter((each) => each.recorded).map((each) => each.name));

const hasFields = ({ columns, each }) => columns.length + each.length > 0;

/** The upper-case letter selects fields of each instance; some subsystems have no others. */
const letterOf = ({ letter, columns }) => (columns.length ? letter : letter.toUpperCase());

/** Folded: which subsystems are not recorded, and the lines that turn them on. Null where all are. */
export function unrecorded(subsystems, isLive) {
  const missing = subsystems.filter((each) => !each.recorded && hasFields(each) && !OF_PROCESSES.has(each.name));
  if (!missing.length) return null;
  const rows = missing.map((each) =>
    h('li', {}, h('code', {}, letterOf(each)), h('b', {}, each.name.replaceAll('_', ' ')), h('span', {}, each.help)),
  );
  const lines = `[record]\nsubsystems = "+${missing.map(letterOf).join('')}"`;
  return h(
    'details',
    { class: 'unrecorded' },
    h('summary', {}, '+ more'),
    h('p', { class: 'quiet' }, isLive ? 'Not recorded, or not on this machine:' : 'Not in this recording:'),
    h('ul', {}, rows),
    isLive ? h('p', { class: 'quiet' }, 'Each letter turns one on, in kymo.toml; then restart kymo:') : null,
    isLive ? copied(lines) : null,
  );
}

/** Null where nothing of it is recorded. */
export function createMore(ctx, host, recorded) {
  const panels = MORE.filter((panel) => recorded.has(panel.of));
  if (!panels.length) return null;
  const scanned = new Set(panels.filter((panel) => panel.scanned).map((panel) => panel.of));
  const held = heldFor(ctx, (name) => scanned.has(name));
  const board = createBoard(ctx, host, { add: (frame) => hold(frame, held) });
  board.onMoments(() => showKnown(board));
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
