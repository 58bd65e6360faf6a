// The answer at a moment as a table: a column a label, the value last. A click on a column sorts by it.
import { h } from './dom.js';
import { stamp } from './time.js';

/** Rows that are drawn; a file has all. */
const DRAWN = 500;

export function createTable(ctx) {
  const head = h('thead', {});
  const body = h('tbody', {});
  const more = h('p', { class: 'sub foot', hidden: true });
  const box = h('div', { class: 'scroller', tabindex: '0' }, h('table', {}, head, body));
  const element = h('section', { class: 'panel answers', hidden: true }, box, more);
  const table = { ctx, head, body, more, shown: { columns: [], rows: [] }, by: -1, down: true };
  return {
    element,
    set: (shown) => {
      if (shown.columns.join() !== table.shown.columns.join()) table.by = -1;
      table.shown = shown;
      draw(table);
    },
    rows: () => [namesOf(table.shown), ...sorted(table)],
  };
}

const namesOf = ({ columns, hasTimes }) => [
  ...columns.map((name) => (name === '__name__' ? 'metric' : name)),
  'value',
  ...(hasTimes ? ['time'] : []),
];

function sorted({ shown: { columns, rows }, by, down }) {
  if (by < 0) return rows;
  const isNumber = by >= columns.length;
  const compare = (a, b) =>
    isNumber ? Number(a[by]) - Number(b[by]) || 0 : a[by].localeCompare(b[by], undefined, { numeric: true });
  return [...rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
}

function draw(table) {
  const { ctx, head, body, more, shown, by, down } = table;
  const names = namesOf(shown);
  const values = shown.columns.length;
  const kind = (n) => (n >= values ? 'number' : '');
  head.replaceChildren(
    h(
      'tr',
      {},
      names.map((name, n) =>
        h(
          'th',
          { class: kind(n), 'aria-sort': n === by ? (down ? 'descending' : 'ascending') : 'none' },
          h('button', { onclick: () => sortBy(table, n) }, name),
        ),
      ),
    ),
  );
  const cell = (value, n) => (n > values ? stamp(value, ctx.zone(), ctx.settings.locale) : value);
  const rows = sorted(table);
  body.replaceChildren(
    ...rows.slice(0, DRAWN).map((row) =>
      h(
        'tr',
        {},
        row.map((value, n) => h('td', { class: kind(n) }, cell(value, n))),
      ),
    ),
  );
  if (!rows.length) body.replaceChildren(h('tr', {}, h('td', { class: 'quiet' }, 'No series fits.')));
  more.hidden = rows.length <= DRAWN;
  more.textContent = `${rows.length - DRAWN} more rows are in the CSV.`;
}

/** Numbers begin with the largest, names with the first. */
function sortBy(table, n) {
  table.down = table.by === n ? !table.down : n >= table.shown.columns.length;
  table.by = n;
  draw(table);
}
