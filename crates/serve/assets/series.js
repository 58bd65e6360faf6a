// The view of stored series: a tree of what others sent, search, and charts of any of them together with fields of this
// machine. With `host` in the address: all that one host sends.
import { h } from './dom.js';
import { createPicker, entry } from './fields.js';
import { panelOf } from './panels.js';
import { chartsOf, readStored, removals, searchStored, treeOf } from './stored.js';

const SHOWN = 300;

export const createSeries = (ctx, host) =>
  createPicker(ctx, host, {
    placeholder: 'search: web1 cpu idle …',
    label: 'Search series',
    hint,
    load,
    found,
    panels,
    foot: (ctx) => removals(ctx.state.fields ?? [], ctx.state.range ? null : ctx.view()),
  });

const hint = () => [
  'What others send comes here: collectd sends to port 25826, ',
  "rrdcached's clients to DATA/rrdcached.sock, see docs/moving.md. ",
  'Choose series on the left: each click adds one to the chart that is marked; they mix with fields of this machine.',
];

async function load(view) {
  const { fields } = readStored(await view.ctx.api.get('stored'));
  view.tree = treeOf(fields);
  view.open ??= new Set(view.tree.size === 1 ? view.tree.keys() : []);
  return fields;
}

/** A host that was asked for is shown in charts of its own, until something is chosen. */
function panels(view) {
  const { host, fields } = view.ctx.state;
  if (!host || fields?.length || !view.all) return null;
  return chartsOf(view.all, host).map((ids, index) => panelOf(ids, `host${index}`));
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
