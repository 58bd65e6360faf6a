// Time travel: the process table, what changed and the line of the moment follow the cursor of the charts above.
// Fetched after the charts have been drawn, which are what is waited for.
import { createChanges } from './changes.js';
import { h, text } from './dom.js';
import { nearMarks, sayMarks } from './near.js';
import { createProcesses } from './processes.js';
import { busiest } from './rows.js';
import { createScans } from './scans.js';
import { clock } from './time.js';
import { format } from './units.js';

const TOP = 3;

export function createTravel(ctx, host, moment, board) {
  const table = h('section', { class: 'panel processes' });
  const changes = h('section', { class: 'panel changes' });
  host.replaceChildren(table, changes);
  const scans = createScans(ctx.api);
  const view = {
    ctx,
    moment,
    board,
    scans,
    processes: createProcesses(ctx, scans, table),
    changes: createChanges(ctx, ctx.api, changes),
  };
  view.processes.onScan((scan, other) => {
    if (other) view.changes.compare(board.cards(), board.frame());
    else view.changes.at(scan);
    say(view);
  });
  return {
    follow: () => {
      view.processes.follow();
      if (ctx.state.b === undefined) view.changes.again();
      say(view);
    },
    sample: (sample) => {
      view.processes.sample(sample);
      say(view);
    },
    draw: () => view.processes.draw(),
    refresh: () => {
      scans.forget();
      view.changes.forget();
      view.processes.follow();
    },
    focusFilter: () => view.processes.focusFilter(),
  };
}

/** One line that says the moment and who was busiest then: the answer without scrolling. */
function say(view) {
  const { ctx } = view;
  const { at, b } = ctx.state;
  const scan = view.processes.scan(),
    other = view.processes.other();
  const time = ctx.moment();
  const near = sayMarks(nearMarks(view.board.frame()?.marks ?? [], ctx.view(), ctx.hover ?? time));
  const both = at !== undefined && b !== undefined && scan && other;
  const parts = both
    ? [`A ${when(ctx, at)}: ${who(ctx, scan)}`, `B ${when(ctx, b)}: ${who(ctx, other)}`]
    : [
        when(ctx, time ?? ctx.edge),
        at !== undefined
          ? 'held, Shift+click another moment to compare'
          : ctx.hover !== null
            ? 'click to hold this moment'
            : ctx.status?.mode === 'file'
              ? 'the end'
              : 'live',
        scan && `busiest: ${who(ctx, scan)}`,
        near,
      ];
  text(view.moment, parts.filter(Boolean).join('   ·   '));
  // live numbers read aloud each second would drown everything else
  view.moment.setAttribute('aria-live', time === null ? 'off' : 'polite');
  view.moment.dataset.held = at !== undefined ? 'held' : ctx.hover !== null ? 'cursor' : 'live';
}

const when = (ctx, time) => (time ? clock(time, ctx.zone(), ctx.settings.locale) : '');

function who(ctx, scan) {
  const names = busiest(scan.rows, TOP).map(
    ({ name, count, pct }) => `${name}${count > 1 ? ` ×${count}` : ''} ${format(pct, '%', '', ctx.settings)}`,
  );
  return names.join(', ') || 'nobody';
}
