// The Now view: small multiples, and below them the processes of the moment, which come when the charts are drawn.
import { createBoard } from './board.js';
import { h } from './dom.js';
import { PANELS, chosen } from './panels.js';

export function createNow(ctx, host) {
  const charts = h('div', { class: 'charts' });
  const moment = h('p', { class: 'moment', role: 'status', 'aria-live': 'polite' });
  const below = h('div', { class: 'travel' });
  host.append(charts, moment, below);
  const view = { ctx, board: createBoard(ctx, charts), travel: null };
  arrange(view);
  const travel = async () => {
    const { createTravel } = await import('./travel.js');
    view.travel = createTravel(ctx, below, moment, view.board);
    view.travel.follow();
  };
  view.board.drawn(travel);
  return {
    board: view.board,
    state: (changed) => onState(view, changed),
    moment: () => onMoment(view),
    sample: (sample) => {
      view.board.sample(sample);
      view.travel?.sample(sample);
    },
    mark: (mark) => view.board.mark(mark),
    refresh: (settled) => {
      if (settled !== true) view.board.refresh(true);
      view.travel?.refresh();
    },
    rebuild: () => {
      arrange(view);
      view.travel?.draw();
    },
    focusFilter: () => view.travel?.focusFilter(),
    rows: () => view.board.frame(),
  };
}

function arrange(view) {
  const split = view.ctx.state.split ?? [];
  view.board.setPanels(
    PANELS.map((panel) => chosen(panel, split)),
    ({ panel, tools }) => {
      const { split: way } = PANELS.find((each) => each.id === panel.id);
      if (!way) return;
      tools.append(
        h(
          'button',
          {
            class: 'split',
            'aria-pressed': String(split.includes(panel.id)),
            onclick: () => view.ctx.toggle('split', panel.id),
          },
          way.label,
        ),
      );
    },
  );
}

function onState(view, changed) {
  if (changed.has('split')) arrange(view);
  else if (['range', 'from', 'thru'].some((name) => changed.has(name))) view.board.refresh(changed.has('soon'));
  else if (changed.has('hide')) view.board.draw();
  if (changed.has('at') || changed.has('b')) onMoment(view);
  else if (['sort', 'filter', 'group'].some((name) => changed.has(name))) view.travel?.draw();
}

function onMoment(view) {
  view.board.moments();
  view.travel?.follow();
}
