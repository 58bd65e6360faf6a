// Boards as the server keeps them (docs/formats/boards.md): a title, and charts of expressions, fields, or the page.
import { PANELS } from './panels.js';

export const VERSION = 1;
export const FORMS = ['graph', 'table', 'stat'];

/** A board without charts. */
export const blank = (title) => ({ version: VERSION, title, charts: [] });

/** The name in the address and of the file: small letters, digits and dashes. */
export function nameOf(title) {
  const plain = title.normalize('NFKD').toLowerCase();
  return plain
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 64);
}

/** A board of a file, which somebody else may have written; throws what is wrong with it. */
export function boardOf(given) {
  const isBoard = given && typeof given === 'object' && Array.isArray(given.charts) && typeof given.title === 'string';
  if (!isBoard) throw new Error('it is no board');
  if (given.version !== VERSION) throw new Error(`its version is not ${VERSION}`);
  return given;
}

/** What a card of the page is on a board; null for a chart whose numbers are computed by its tab. */
export function chartOf({ id, title, layers, needs, add }) {
  if (needs || add || layers.some((each) => each.parts)) return null;
  if (PANELS.some((panel) => panel.id === id)) return { panel: id };
  return { title, fields: layers.map((each) => each.id) };
}

/** The name of a line: `{{mode}}` in the legend is the label's value. */
export const legendOf = (legend, metric) =>
  legend.replace(/\{\{\s*([a-zA-Z_]\w*)\s*\}\}/g, (_, label) => metric[label] ?? '');

/** The title of a chart that has none. */
export function titleOf(chart) {
  if (chart.title) return chart.title;
  if (chart.queries) return chart.queries.map(({ expr }) => expr).join(', ');
  return chart.panel ?? (chart.fields ?? []).join(', ');
}

/** A list with the item at one place moved by some places. */
export function moved(list, at, by) {
  const to = at + by;
  if (to < 0 || to >= list.length) return list;
  const changed = list.slice();
  changed.splice(to, 0, ...changed.splice(at, 1));
  return changed;
}
