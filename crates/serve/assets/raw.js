// The view of raw texts: what the kernel said at the moment, to the letter.
import { h, text } from './dom.js';
import { lastWins } from './scans.js';
import { ago, stamp } from './time.js';

const FIRST = 'proc/stat';
const SHOWN = 400;

export function createRaw(ctx, host) {
  const input = h('input', {
    type: 'search',
    placeholder: 'search sources',
    'aria-label': 'Search sources',
    spellcheck: 'false',
    oninput: () => list(view),
  });
  const names = h('ul', { class: 'fields' });
  const title = h('h2', {}),
    sub = h('span', { class: 'sub' });
  const body = h('pre', { tabindex: '0' });
  host.append(
    h('aside', { class: 'panel picker' }, h('header', { class: 'bar' }, input), names),
    h('section', { class: 'panel' }, h('header', { class: 'bar' }, h('div', { class: 'when' }, title, sub)), body),
  );
  const view = { ctx, input, names, title, sub, body, sources: [] };
  view.load = lastWins((signal) => load(view, signal));
  return {
    show: view.load,
    refresh: () => view.load(),
    moment: view.load,
    state: (changed) => (changed.has('source') || changed.has('at')) && view.load(),
    rebuild: view.load,
    focusFilter: () => input.focus(),
  };
}

async function load(view, signal) {
  const { ctx } = view;
  const at = ctx.moment() ?? 'now';
  const source = ctx.state.source ?? FIRST;
  try {
    const [sources, response] = await Promise.all([
      ctx.api.get('sources', { at }, signal),
      ctx.api.open('text', { source, at }, signal),
    ]);
    const time = Number(response.headers.get('Kymo-Time'));
    text(view.title, source);
    const when = at === 'now' ? 'the newest sample' : ago(time, ctx.edge ?? time);
    text(view.sub, `${stamp(time, ctx.zone(), ctx.settings.locale)} · ${when} · as the kernel gave it`);
    text(view.body, await response.text());
    view.sources = sources.sources;
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    text(view.title, source);
    text(view.sub, error.status === 401 ? 'Texts of processes need a token: see the lock.' : error.message);
    text(view.body, '');
  }
  list(view);
}

function list({ ctx, input, names, sources }) {
  const wanted = input.value.toLowerCase();
  const source = ctx.state.source ?? FIRST;
  const found = sources.filter((name) => name.toLowerCase().includes(wanted));
  names.replaceChildren(
    ...found
      .slice(0, SHOWN)
      .map((name) =>
        h(
          'li',
          {},
          h(
            'button',
            { 'aria-pressed': String(name === source), onclick: () => ctx.set({ source: name }) },
            h('span', { class: 'name' }, name),
          ),
        ),
      ),
  );
}
