// Panels that can be split into their instances: a button in the card's head.
import { h } from './dom.js';
import { chosen } from './panels.js';

/** Gives a board the panels as the reader has them. */
export function setSplit(ctx, board, panels) {
  const split = ctx.state.split ?? [];
  board.setPanels(
    panels.map((panel) => chosen(panel, split)),
    ({ panel, tools }) => {
      const { split: way } = panels.find((each) => each.id === panel.id);
      if (!way) return;
      tools.append(
        h(
          'button',
          {
            class: 'split',
            'aria-pressed': String(split.includes(panel.id)),
            onclick: () => ctx.toggle('split', panel.id),
          },
          way.label,
        ),
      );
    },
  );
}
