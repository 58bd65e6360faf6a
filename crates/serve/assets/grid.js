// A table that can be sorted, of as many rows as are worth drawing; rows are used again, so that following the cursor
// only changes the texts that differ.
import { h, text } from './dom.js';

const FIRST = 200;

/** `columns`: {name, title, help, number, write(row, line), part(row), class}. */
export function createGrid(label, onSort) {
  const head = h('tr', {});
  const body = h('tbody', {});
  const more = h('button', { class: 'more', hidden: true });
  const table = h('table', { 'aria-label': label }, h('thead', {}, head), body);
  const element = h('div', { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': label }, table);
  const grid = { head, body, more, table, columns: [], all: false, drawn: null };
  more.addEventListener('click', () => {
    grid.all = true;
    drawRows(grid, ...grid.drawn);
  });
  return {
    element: h('div', { class: 'tablebox' }, element, more),
    columns: (columns) => setColumns(grid, columns, onSort),
    draw: (lines, sort, pick) => {
      grid.drawn = [lines, pick];
      drawSort(grid, sort);
      drawRows(grid, lines, pick);
    },
  };
}

function setColumns(grid, columns, onSort) {
  const same = grid.columns.map((each) => each.name).join() === columns.map((each) => each.name).join();
  grid.columns = columns;
  if (same) return;
  grid.body.replaceChildren();
  grid.head.replaceChildren(
    ...columns.map((column) => {
      const button = h('button', { title: column.help ?? '', onclick: () => onSort(column) }, column.title);
      return h(
        'th',
        { scope: 'col', class: column.number ? 'number' : column.class, 'data-column': column.name },
        button,
      );
    }),
  );
}

function drawSort(grid, sort) {
  const name = sort.replace(/^-/, '');
  for (const cell of grid.head.children) {
    const direction = cell.dataset.column === name ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none';
    cell.setAttribute('aria-sort', direction);
  }
}

function drawRows(grid, lines, pick) {
  const shown = grid.all ? lines.length : Math.min(lines.length, FIRST);
  while (grid.body.rows.length > shown) grid.body.lastChild.remove();
  while (grid.body.rows.length < shown)
    grid.body.append(
      h(
        'tr',
        {},
        grid.columns.map((column) =>
          h('td', { class: [column.number ? 'number' : '', column.class ?? ''].join(' ').trim() }),
        ),
      ),
    );
  for (let n = 0; n < shown; n++) drawRow(grid, grid.body.rows[n], lines[n], pick);
  grid.more.hidden = shown === lines.length;
  text(grid.more, `show all ${lines.length} rows`);
}

function drawRow(grid, tr, line, pick) {
  tr.className = line.label !== undefined ? 'group' : '';
  tr.onclick = pick ? () => pick(line) : null;
  tr.onkeydown = pick ? (event) => event.key === 'Enter' && pick(line) : null;
  if (pick) tr.tabIndex = 0;
  grid.columns.forEach((column, n) => {
    const cell = tr.cells[n];
    text(cell, column.write(line.row, line));
    if (n === 0) cell.style.paddingLeft = line.depth ? `${8 + Math.min(line.depth, 12) * 14}px` : '';
    if (column.part)
      cell.style.setProperty('--part', `${Math.min(100, Math.max(0, 100 * (column.part(line.row) || 0))).toFixed(1)}%`);
    if (column.tone) cell.dataset.tone = column.tone(line.row);
  });
}
