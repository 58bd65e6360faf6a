// The view of all fields: search, choose, put together. A chart is chosen by its title; what is clicked goes there.
import { createBoard } from './board.js';
import { h, text } from './dom.js';
import { panelOf } from './panels.js';
import { catalogue, search } from './search.js';

const SHOWN = 300;

export function createFields(ctx, host) {
  const input = h('input', { type: 'search', placeholder: 'search: disk wait, steal, dropped …', 'aria-label': 'Search fields', value: ctx.state.q ?? '', spellcheck: 'false', oninput: () => ctx.set({ q: input.value || undefined }) });
  const count = h('p', { class: 'sub', role: 'status' });
  const list = h('ul', { class: 'fields' });
  const charts = h('div', { class: 'charts' });
  const empty = h('p', { class: 'quiet hint' }, 'Choose fields on the left: each click adds one to the chart that is marked. The address of this page is the view: send it to somebody.');
  const fresh = h('button', { onclick: () => { view.target = boards(ctx).length; draw(view); } }, 'new chart');
  host.append(h('aside', { class: 'panel picker' }, h('header', { class: 'bar' }, input, fresh), count, list), h('div', { class: 'chosen' }, empty, charts));
  const view = { ctx, input, count, list, empty, all: null, target: 0, board: createBoard(ctx, charts) };
  return {
    board: view.board,
    show: () => { if (!view.all) load(view); arrange(view); },
    state: (changed) => onState(view, changed),
    moment: () => view.board.moments(),
    sample: (sample) => view.board.sample(sample),
    mark: (mark) => view.board.mark(mark),
    refresh: () => view.board.refresh(true),
    rebuild: () => arrange(view),
    focusFilter: () => input.focus(),
    rows: () => view.board.frame(),
  };
}

const boards = (ctx) => ctx.state.fields ?? [];

async function load(view) {
  try {
    view.all = catalogue((await view.ctx.api.get('fields')).subsystems);
    draw(view);
  } catch (error) {
    text(view.count, error.message);
  }
}

function onState(view, changed) {
  if (changed.has('fields')) arrange(view);
  else if (['range', 'from', 'thru'].some((name) => changed.has(name))) view.board.refresh(changed.has('soon'));
  else if (changed.has('hide')) view.board.draw();
  if (changed.has('at') || changed.has('b')) view.board.moments();
  if (changed.has('q')) draw(view);
}

function arrange(view) {
  const chosen = boards(view.ctx);
  view.target = Math.min(view.target, chosen.length);
  view.empty.hidden = chosen.length > 0;
  view.board.setPanels(chosen.map(panelOf), ({ element, tools }, n) => {
    tools.append(h('button', { class: 'target', title: 'What is clicked in the list goes to this chart', 'aria-pressed': String(n === view.target), onclick: () => { view.target = n; arrange(view); } }, 'add here'),
      h('button', { class: 'icon', 'aria-label': 'Remove this chart', onclick: () => view.ctx.set({ fields: chosen.filter((_, at) => at !== n) }) }, '×'));
    element.classList.toggle('marked', n === view.target);
  });
  draw(view);
}

function draw(view) {
  if (!view.all) return;
  if (document.activeElement !== view.input) view.input.value = view.ctx.state.q ?? '';
  const found = search(view.all, view.ctx.state.q ?? '');
  const here = new Set(boards(view.ctx)[view.target] ?? []);
  const fresh = view.target >= boards(view.ctx).length;
  text(view.count, `${found.length} of ${view.all.length} fields · a click adds to ${fresh ? 'a new chart' : `chart ${view.target + 1}`}`);
  view.list.replaceChildren(...found.slice(0, SHOWN).map((field) => entry(view, field, here)), found.length > SHOWN ? h('li', { class: 'quiet' }, `and ${found.length - SHOWN} more: search for less`) : '');
}

function entry(view, field, here) {
  return h('li', {}, h('button', { 'aria-pressed': String(here.has(field.id)), onclick: () => choose(view, field.id) },
    h('span', { class: 'name' }, field.id), h('span', { class: 'unit' }, field.unit), h('small', {}, field.help)));
}

/** Puts a field into the marked chart, or takes it out of it. */
function choose(view, id) {
  const chosen = boards(view.ctx).map((chart) => chart.slice());
  const chart = (chosen[view.target] ??= []);
  const at = chart.indexOf(id);
  if (at < 0) chart.push(id);
  else chart.splice(at, 1);
  view.ctx.set({ fields: chosen.filter((each) => each.length) });
}
