// The Now view: small multiples, and below them the processes of the moment, which come when the charts are drawn.
import { createBoard } from './board.js';
import { h } from './dom.js';
import { hold } from './frame.js';
import { heldFor } from './held.js';
import { PANELS } from './panels.js';
import { setSplit } from './split.js';

export function createNow(ctx, host) {
  const charts = h('div', { class: 'charts' });
  const more = h('div', { class: 'charts others' });
  const groups = h('div', { class: 'others groups' });
  const moment = h('p', { class: 'moment', role: 'status', 'aria-live': 'polite' });
  const below = h('div', { class: 'travel' });
  const dock = h('div', { class: 'dock' }, moment, below);
  host.append(charts, more, groups, dock);
  const held = heldFor(ctx, (name) => name === 'filesystems');
  const board = createBoard(ctx, charts, { add: (frame) => hold(frame, held) });
  const view = { ctx, dock, board, more: null, groups: null, travel: null };
  setDock(view);
  arrange(view);
  const travel = async () => {
    const { createTravel } = await import('./travel.js');
    view.travel = createTravel(ctx, below, moment, view.board);
    view.travel.follow();
    await addMore(view, more, groups);
  };
  view.board.drawn(travel);
  return {
    board: view.board,
    fields: () => boards(view).flatMap((board) => board.fields()),
    cards: () => boards(view).flatMap((board) => board.cards()),
    state: (changed) => onState(view, changed),
    moment: () => onMoment(view),
    sample: (sample) => {
      view.board.sample(sample);
      if (view.board.frame()) hold(view.board.frame(), held);
      view.more?.sample(sample);
      view.groups?.sample(sample);
      view.travel?.sample(sample);
    },
    mark: (mark) => boards(view).forEach((board) => board.mark(mark)),
    refresh: (settled) => {
      if (settled !== true) boards(view).forEach((board) => board.refresh(true));
      view.groups?.refresh();
      view.travel?.refresh();
    },
    rebuild: () => {
      setDock(view);
      arrange(view);
      view.travel?.draw();
    },
    focusFilter: () => view.travel?.focusFilter(),
    rows: () => view.board.frame(),
  };
}

function arrange(view) {
  setSplit(view.ctx, view.board, PANELS);
  view.more?.arrange();
}

/** The table of processes is in sight below the charts, or behind the last of them. */
const setDock = ({ ctx, dock }) => (dock.dataset.docked = String(ctx.settings.table === 'dock'));

/** Below the usual charts those of what else is recorded. */
async function addMore(view, host, below) {
  const { createMore, recordedOf, subsystemsOf, unrecorded } = await import('./more.js');
  const subsystems = await subsystemsOf(view.ctx);
  if (!subsystems) return;
  const recorded = recordedOf(subsystems);
  view.more = createMore(view.ctx, host, recorded);
  if (recorded.has('cgroups')) {
    const { createGroups } = await import('./groups.js');
    view.groups = createGroups(view.ctx, below);
  }
  const rest = unrecorded(subsystems, view.ctx.status?.mode !== 'file');
  if (rest) below.after(rest);
  if (view.more || view.groups) view.ctx.subscribe();
}

const boards = ({ board, more, groups }) => [board, more?.board, groups?.board].filter(Boolean);

function onState(view, changed) {
  if (changed.has('split')) arrange(view);
  else if (['range', 'from', 'thru'].some((name) => changed.has(name)))
    boards(view).forEach((board) => board.refresh(changed.has('soon')));
  else if (changed.has('hide')) boards(view).forEach((board) => board.draw());
  if (changed.has('groups') || changed.has('listed')) view.groups?.chosen();
  if (changed.has('at') || changed.has('b')) onMoment(view);
  else if (['sort', 'filter', 'group'].some((name) => changed.has(name))) view.travel?.draw();
}

function onMoment(view) {
  boards(view).forEach((board) => board.moments());
  view.groups?.follow();
  view.travel?.follow();
}
