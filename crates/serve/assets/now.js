// The Now view: small multiples, and below them the processes of the moment.
import { createBoard } from './board.js';
import { createChanges } from './changes.js';
import { h, text } from './dom.js';
import { PANELS, chosen } from './panels.js';
import { createProcesses } from './processes.js';
import { busiest } from './rows.js';
import { createScans } from './scans.js';
import { clock } from './time.js';
import { format } from './units.js';

const TOP = 3;

export function createNow(ctx, host) {
  const charts = h('div', { class: 'charts' });
  const moment = h('p', { class: 'moment', role: 'status', 'aria-live': 'polite' });
  const table = h('section', { class: 'panel processes' });
  const changes = h('section', { class: 'panel changes' });
  host.append(charts, moment, h('div', { class: 'travel' }, table, changes));
  const scans = createScans(ctx.api);
  const view = { ctx, moment, scans, board: createBoard(ctx, charts), processes: createProcesses(ctx, scans, table), changes: createChanges(ctx, scans, changes) };
  view.processes.onScan((scan, other) => { if (other) view.changes.compare(view.board.cards(), view.board.frame()); else view.changes.at(scan); say(view); });
  arrange(view);
  return {
    board: view.board,
    state: (changed) => onState(view, changed),
    moment: () => onMoment(view),
    sample: (sample) => { view.board.sample(sample); view.processes.sample(sample); say(view); },
    mark: (mark) => view.board.mark(mark),
    refresh: () => { view.scans.forget(); view.board.refresh(true); view.processes.follow(); },
    rebuild: () => { arrange(view); view.processes.draw(); },
    focusFilter: () => view.processes.focusFilter(),
    rows: () => view.board.frame(),
  };
}

function arrange(view) {
  const split = view.ctx.state.split ?? [];
  view.board.setPanels(PANELS.map((panel) => chosen(panel, split)), ({ panel, tools }) => {
    const { split: way } = PANELS.find((each) => each.id === panel.id);
    if (!way) return;
    tools.append(h('button', { class: 'split', 'aria-pressed': String(split.includes(panel.id)), onclick: () => view.ctx.toggle('split', panel.id) }, way.label));
  });
}

function onState(view, changed) {
  if (changed.has('split')) arrange(view);
  else if (['range', 'from', 'thru'].some((name) => changed.has(name))) view.board.refresh(changed.has('soon'));
  else if (changed.has('hide')) view.board.draw();
  if (changed.has('at') || changed.has('b')) onMoment(view);
  else if (['sort', 'filter', 'group'].some((name) => changed.has(name))) view.processes.draw();
}

function onMoment(view) {
  view.board.moments();
  view.processes.follow();
  say(view);
}

/** One line that says the moment and who was busiest then: the answer without scrolling. */
function say(view) {
  const { ctx } = view;
  const { at, b } = ctx.state;
  const scan = view.processes.scan(), other = view.processes.other();
  const time = ctx.moment();
  const near = nearMarks(view.board.frame(), ctx, ctx.hover ?? time).map((mark) => `${mark.kind}: ${mark.text}`).join(' · ');
  const both = at !== undefined && b !== undefined && scan && other;
  const parts = both ? [`A ${when(ctx, at)}: ${who(ctx, scan)}`, `B ${when(ctx, b)}: ${who(ctx, other)}`]
    : [when(ctx, time ?? ctx.edge), at !== undefined ? 'held, Shift+click another moment to compare' : ctx.hover !== null ? 'click to hold this moment' : 'live', scan && `busiest: ${who(ctx, scan)}`, near];
  text(view.moment, parts.filter(Boolean).join('   ·   '));
  view.moment.dataset.held = at !== undefined ? 'held' : ctx.hover !== null ? 'cursor' : 'live';
}

const when = (ctx, time) => (time ? clock(time, ctx.zone(), ctx.settings.locale) : '');

function who(ctx, scan) {
  const names = busiest(scan.rows, TOP).map(({ name, count, pct }) => `${name}${count > 1 ? ` ×${count}` : ''} ${format(pct, '%', '', ctx.settings)}`);
  return names.join(', ') || 'nobody';
}

/** Events within a hair's breadth of the cursor. */
function nearMarks(frame, ctx, time) {
  if (!frame || time === null) return [];
  const { from, thru } = ctx.view();
  const reach = (thru - from) / 100;
  return frame.marks.filter((mark) => time >= mark.time - reach && time <= mark.until + reach);
}
