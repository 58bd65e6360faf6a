// Pinning: a chart becomes one of a board, which is kept by the server.
import { blank, chartOf, nameOf } from './boards-kept.js';
import { dialog, h, text } from './dom.js';

/** A card of the page; the numbers of some are computed by their tab, and are on no board. */
export function pinPanel(ctx, panel) {
  const chart = chartOf(panel);
  if (chart) return pin(ctx, chart);
  return dialog(
    'Pin to a board',
    h('p', {}, 'The numbers of this chart are computed by its tab: they are on no board.'),
  );
}

/** Asks for the board, and puts the chart at its end. */
export async function pin(ctx, chart) {
  const said = h('p', { class: 'note', role: 'alert', hidden: true });
  const fail = (error) => {
    said.hidden = false;
    text(said, error.message);
  };
  const title = h('input', { type: 'text', 'aria-label': 'Title of a new board', placeholder: 'title of a new board' });
  const list = h('select', { 'aria-label': 'Board' });
  const keep = h('button', { class: 'main', onclick: () => save().catch(fail) }, 'Pin');
  const box = dialog('Pin to a board', said, h('div', { class: 'row' }, list, title, keep));
  const chosen = () => {
    title.hidden = Boolean(list.value);
  };
  list.addEventListener('change', chosen);
  title.addEventListener('keydown', (event) => event.key === 'Enter' && save().catch(fail));

  async function save() {
    const name = list.value || nameOf(title.value);
    if (!name) throw new Error('cannot pin: a board needs a title with letters or digits');
    const board = await ctx.api.get(`boards/${name}`).catch((error) => {
      if (error.status === 404) return blank(title.value.trim() || name);
      throw error;
    });
    await ctx.api.put(`boards/${name}`, { ...board, charts: [...board.charts, chart] });
    box.close();
    ctx.set({ view: 'boards', board: name });
  }

  try {
    const { boards, may_keep: mayKeep } = await ctx.api.get('boards');
    list.append(...boards.map((each) => h('option', { value: each.name }, each.title || each.name)));
    list.append(h('option', { value: '' }, 'a new board'));
    if (ctx.state.board && boards.some(({ name }) => name === ctx.state.board)) list.value = ctx.state.board;
    chosen();
    if (!mayKeep) fail(new Error('Boards are kept for who has the token: see the lock.'));
  } catch (error) {
    fail(error);
  }
}
