// The view of stored series: a tree of what others sent, search, and charts of any of them together with fields of this
// machine. With `host` in the address: all that one host sends.
import { fullOf, hostPanels } from './collectd.js';
import { h } from './dom.js';
import { createPicker, entry } from './fields.js';
import { fillEmpty } from './filling.js';
import { DAY_S, problemsOf } from './problems.js';
import { readStored, removals, searchStored, treeOf } from './stored.js';

const SHOWN = 300;
const PROBLEMS_EVERY_MS = 10000;
/** Seconds on each side of a problem. */
const HALF_S = 450;

/** Charts of the host that is shown before one is chosen. */
const FIRST_CHARTS = 8;

export const createSeries = (ctx, host) =>
  createPicker(ctx, host, {
    placeholder: 'search: web1 cpu idle …',
    label: 'Search series',
    hint,
    load,
    found,
    panels,
    arranged,
    drawn,
    foot: (ctx) => removals(ctx.state.fields ?? [], ctx.state.range ? null : ctx.view()),
  });

const hint = () => [
  'Choose series on the left: each click adds one to the chart that is marked; they mix with fields of this machine.',
];

async function load(view) {
  const { fields } = readStored(await view.ctx.api.get('stored'));
  view.tree = treeOf(fields);
  view.open ??= new Set(view.tree.size === 1 ? view.tree.keys() : []);
  return fields;
}

/** A host that was asked for is shown in charts of its own, until something is chosen; before that, who sent last. */
function panels(view) {
  const { host, fields } = view.ctx.state;
  if (fields?.length || !view.all?.length) return null;
  if (host) return hostPanels(view.all, host);
  return hostPanels(view.all, newestHost(view.all)).slice(0, FIRST_CHARTS);
}

const newestHost = (all) => all.reduce((one, other) => ((other.last ?? 0) > (one.last ?? 0) ? other : one)).host;

/** Above the charts of a host: its name and its problems. Without any series: how some would come. */
function arranged(view) {
  const { ctx, all, above, empty } = view;
  const { host, fields } = ctx.state;
  const isOfHost = Boolean(host) && !fields?.length;
  above.hidden = !isOfHost;
  if (isOfHost) sayProblems(view, host);
  if (all && !all.length) fillEmpty(empty, ctx, ['collectd', 'statsd']);
}

/** Asked anew for another host, and at most each ten seconds for the same one. */
async function sayProblems(view, host) {
  const { ctx, above } = view;
  const isSame = view.judged?.host === host;
  if (isSame && performance.now() - view.judged.at < PROBLEMS_EVERY_MS) return;
  view.judged = { ...(isSame ? view.judged : {}), host, at: performance.now() };
  if (!isSame) above.replaceChildren(h('h2', {}, host));
  try {
    const [stored, senders, { marks }] = await Promise.all([
      ctx.api.get('stored'),
      ctx.api.get('hosts'),
      ctx.api.get('events', { from: -DAY_S, thru: 'now' }),
    ]);
    const problems = problemsOf(host, readStored(stored).hosts, senders, marks);
    view.judged.problems = problems;
    if (ctx.state.host === host) showProblems(view, host);
  } catch (error) {
    above.replaceChildren(h('h2', {}, host), h('p', { class: 'note' }, error.message));
  }
}

/** File systems that are nearly full are known from the charts. */
function drawn(view) {
  const { judged, ctx } = view;
  const { host } = ctx.state;
  if (!judged?.problems || judged.host !== host || ctx.state.fields?.length) return;
  const full = fullOf(view.board.frame(), host);
  if (full.map(({ text }) => text).join() === judged.full?.map(({ text }) => text).join()) return;
  judged.full = full;
  showProblems(view, host);
}

function showProblems({ ctx, above, judged }, host) {
  const all = [...judged.problems, ...(judged.full ?? [])];
  above.replaceChildren(h('h2', {}, host), problemList(ctx, all));
}

function problemList(ctx, problems) {
  if (!problems.length) return h('p', { class: 'quiet' }, 'No problems: it sends, and notified none in a day.');
  const item = ({ text, time }) => {
    const go = () => ctx.set({ range: undefined, from: time - HALF_S, thru: time + HALF_S }, { soon: true });
    return h('li', {}, time === undefined ? text : h('button', { class: 'link', onclick: go }, text));
  };
  return h('ul', { class: 'problems note' }, problems.map(item));
}

function found(view, wanted, here) {
  if (!wanted.trim())
    return {
      count: view.all.length,
      items: [...view.tree].map(([host, folders]) =>
        branch(view, host, host, count(folders), () =>
          [...folders].map(([folder, fields]) => folderOf(view, host, folder, fields, here)),
        ),
      ),
    };
  const fields = searchStored(view.all, wanted);
  const items = fields
    .slice(0, SHOWN)
    .map((field) => entry(view, field, here, [field.host, field.folder].filter(Boolean).join(' ')));
  if (fields.length > SHOWN)
    items.push(h('li', { class: 'quiet' }, `and ${fields.length - SHOWN} more: search for less`));
  return { count: fields.length, items };
}

const count = (folders) => [...folders.values()].reduce((sum, fields) => sum + fields.length, 0);

function folderOf(view, host, folder, fields, here) {
  const items = () => fields.map((field) => entry(view, field, here));
  return folder ? branch(view, `${host}/${folder}`, folder, fields.length, items) : items();
}

/** A folder of the tree; what is in it is made when it is open. */
function branch(view, key, label, size, items) {
  const isOpen = view.open.has(key);
  const toggle = () => {
    if (!view.open.delete(key)) view.open.add(key);
    view.draw();
  };
  return h(
    'li',
    { class: 'branch' },
    h(
      'button',
      { 'aria-expanded': String(isOpen), onclick: toggle },
      h('span', { class: 'name' }, label),
      h('span', { class: 'unit' }, String(size)),
    ),
    isOpen ? h('ul', {}, items()) : null,
  );
}
