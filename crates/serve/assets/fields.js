// A list to choose from, and charts of what was chosen. A chart is chosen by its title; what is clicked goes there.
// The view of all fields is one such list, the view of stored series (series.js) the other.
import { createBoard } from './board.js';
import { h, text } from './dom.js';
import { nearMarks, sayMarks } from './near.js';
import { panelOf } from './panels.js';
import { catalogue, overview, search } from './search.js';
import { setSplit } from './split.js';

const SHOWN = 300;

export const createFields = (ctx, host) =>
  createPicker(ctx, host, {
    placeholder: 'search: disk wait, steal, dropped …',
    label: 'Search fields',
    hint,
    load,
    found,
    panels,
  });

const hint = () => [
  'Choose fields on the left: each click adds one to the chart that is marked. ',
  'The address of this page is the view: send it to somebody.',
];

async function load(view) {
  view.subsystems ??= (await view.ctx.api.get('fields')).subsystems;
  return catalogue(view.subsystems);
}

/** Until something is chosen: a chart of each subsystem that is recorded. */
const panels = ({ ctx, subsystems }) => (boards(ctx).length || !subsystems ? null : overview(subsystems));

function found(view, wanted, here) {
  const fields = search(view.all, wanted);
  const items = fields.slice(0, SHOWN).map((field) => entry(view, field, here));
  if (fields.length > SHOWN)
    items.push(h('li', { class: 'quiet' }, `and ${fields.length - SHOWN} more: search for less`));
  return { count: fields.length, items };
}

/**
 * `kind`: what there is to choose from (`load`), how it is listed (`found`), charts that need no choice (`panels`),
 * lines below the charts (`foot`), and what is done after each arrangement (`arranged`) and each drawing (`drawn`).
 */
export function createPicker(ctx, host, kind) {
  const input = h('input', {
    type: 'search',
    placeholder: kind.placeholder,
    'aria-label': kind.label,
    value: ctx.state.q ?? '',
    spellcheck: 'false',
    oninput: () => ctx.set({ q: input.value || undefined }),
  });
  const count = h('p', { class: 'sub', role: 'status' });
  const list = h('ul', { class: 'fields' });
  const charts = h('div', { class: 'charts' });
  const empty = h('div', { class: 'quiet hint' }, kind.hint());
  const above = h('div', { class: 'above', hidden: true });
  const said = h('p', { class: 'moment', role: 'status', hidden: true });
  const foot = h('pre', { class: 'sub foot', hidden: true });
  const fresh = h(
    'button',
    {
      onclick: () => {
        view.target = boards(ctx).length;
        draw(view);
      },
    },
    'new chart',
  );
  host.append(
    h('aside', { class: 'panel picker' }, h('header', { class: 'bar' }, input, fresh), count, list),
    h('div', { class: 'chosen' }, above, empty, charts, said, foot),
  );
  const view = { ctx, kind, input, count, list, empty, above, said, foot, all: null, target: 0 };
  view.board = createBoard(ctx, charts);
  view.draw = () => draw(view);
  view.board.onMoments(() => say(view));
  return {
    board: view.board,
    show: () => {
      if (!view.all || kind.panels) fill(view);
      arrange(view);
    },
    state: (changed) => onState(view, changed),
    moment: () => view.board.moments(),
    sample: (sample) => view.board.sample(sample),
    mark: (mark) => view.board.mark(mark),
    refresh: (settled) => settled !== true && view.board.refresh(true),
    rebuild: () => arrange(view),
    focusFilter: () => input.focus(),
    rows: () => view.board.frame(),
  };
}

const boards = (ctx) => ctx.state.fields ?? [];

async function fill(view) {
  try {
    view.all = await view.kind.load(view);
    if (!view.all.length || view.kind.panels?.(view)) arrange(view);
    else draw(view);
  } catch (error) {
    text(view.count, error.message);
  }
}

function onState(view, changed) {
  if (['fields', 'host', 'split'].some((name) => changed.has(name))) arrange(view);
  else if (['range', 'from', 'thru'].some((name) => changed.has(name))) view.board.refresh(changed.has('soon'));
  else if (changed.has('hide')) view.board.draw();
  if (['range', 'from', 'thru'].some((name) => changed.has(name))) sayFoot(view);
  if (changed.has('at') || changed.has('b')) view.board.moments();
  if (changed.has('q')) draw(view);
}

/** What happened at the cursor. */
function say(view) {
  const { ctx, board, said } = view;
  const near = nearMarks(board.frame()?.marks ?? [], ctx.view(), ctx.hover ?? ctx.moment());
  text(said, sayMarks(near));
  said.hidden = !near.length;
  view.kind.drawn?.(view);
}

function sayFoot({ ctx, kind, foot }) {
  const lines = kind.foot?.(ctx) ?? [];
  text(foot, lines.join('\n'));
  foot.hidden = !lines.length;
}

function arrange(view) {
  sayFoot(view);
  const chosen = boards(view.ctx);
  view.target = Math.min(view.target, chosen.length);
  const panels = view.kind.panels?.(view);
  view.empty.hidden = chosen.length > 0 || Boolean(view.ctx.state.host);
  view.empty.classList.toggle('short', Boolean(panels?.length));
  view.kind.arranged?.(view);
  if (panels?.length) {
    setSplit(view.ctx, view.board, panels);
    return draw(view);
  }
  view.board.setPanels(chosen.map(panelOf), ({ element, tools }, n) => {
    tools.append(
      h(
        'button',
        {
          class: 'target',
          title: 'What is clicked in the list goes to this chart',
          'aria-pressed': String(n === view.target),
          onclick: () => {
            view.target = n;
            arrange(view);
          },
        },
        'add here',
      ),
      h(
        'button',
        {
          class: 'icon',
          'aria-label': 'Remove this chart',
          onclick: () => view.ctx.set({ fields: chosen.filter((_, at) => at !== n) }),
        },
        '×',
      ),
    );
    element.classList.toggle('marked', n === view.target);
  });
  draw(view);
}

function draw(view) {
  if (!view.all) return;
  if (document.activeElement !== view.input) view.input.value = view.ctx.state.q ?? '';
  const here = new Set(boards(view.ctx)[view.target] ?? []);
  const fresh = view.target >= boards(view.ctx).length;
  const { count, items } = view.kind.found(view, view.ctx.state.q ?? '', here);
  text(
    view.count,
    `${count} of ${view.all.length} · a click adds to ${fresh ? 'a new chart' : `chart ${view.target + 1}`}`,
  );
  view.list.replaceChildren(...items);
}

/** A field to choose; a stored one by its name and column. */
export function entry(view, field, here, about = field.help) {
  const name = field.name
    ? [field.name, field.column === 'value' ? '' : field.column].filter(Boolean).join(' ')
    : field.id;
  return h(
    'li',
    {},
    h(
      'button',
      { 'aria-pressed': String(here.has(field.id)), onclick: () => choose(view, field.id) },
      h('span', { class: 'name' }, name),
      h('span', { class: 'unit' }, field.unit),
      about ? h('small', {}, about) : null,
    ),
  );
}

/** Puts a field into the marked chart, or takes it out of it. */
function choose(view, id) {
  const chosen = boards(view.ctx).map((chart) => chart.slice());
  const chart = (chosen[view.target] ??= []);
  const at = chart.indexOf(id);
  if (at < 0) chart.push(id);
  else chart.splice(at, 1);
  view.ctx.set({ fields: chosen.filter((each) => each.length), host: undefined });
}
