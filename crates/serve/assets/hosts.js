// The view of hosts: who sends values, when the last ones came, and how many. Those who fell silent come first.
import { h, text } from './dom.js';
import { isSilent, orderHosts, readStored } from './stored.js';
import { span, stamp } from './time.js';

const EVERY_MS = 10000;

export function createHosts(ctx, host) {
  const sub = h('span', { class: 'sub' });
  const input = h('input', {
    type: 'search',
    placeholder: 'filter',
    'aria-label': 'Filter hosts',
    spellcheck: 'false',
    oninput: () => draw(view),
  });
  const body = h('tbody', {});
  const heads = ['host', 'last value', 'series', 'values/s'].map((name, n) =>
    h('th', { class: n > 1 ? 'number' : '', scope: 'col' }, h('span', { class: 'head' }, name)),
  );
  const table = h('table', { class: 'hosts' }, h('thead', {}, h('tr', {}, heads)), body);
  host.append(
    h(
      'section',
      { class: 'panel' },
      h('header', { class: 'bar' }, h('div', { class: 'when' }, h('h2', {}, 'Hosts'), sub), input),
      h('div', { class: 'scroller' }, table),
    ),
  );
  const view = { ctx, host, sub, input, body, hosts: null };
  setInterval(() => !host.hidden && !document.hidden && load(view), EVERY_MS);
  return {
    show: () => load(view),
    refresh: () => load(view),
    rebuild: () => draw(view),
    focusFilter: () => input.focus(),
  };
}

async function load(view) {
  try {
    const answer = await view.ctx.api.get('stored');
    view.hosts = readStored(answer).hosts;
    view.now = answer.now;
    draw(view);
  } catch (error) {
    view.body.replaceChildren(h('tr', {}, h('td', { colspan: 4, class: 'quiet' }, error.message)));
  }
}

function draw({ ctx, sub, input, body, hosts, now }) {
  if (!hosts) return;
  const wanted = input.value.toLowerCase();
  const seen = orderHosts(
    hosts.filter(({ host }) => host.toLowerCase().includes(wanted)),
    now,
  );
  const silent = hosts.filter((each) => isSilent(each, now)).length;
  text(
    sub,
    hosts.length
      ? `${hosts.length} send${silent ? `, ${silent} silent` : ''}; a click shows what a host sends`
      : 'nobody has sent anything yet: see docs/moving.md',
  );
  body.replaceChildren(...seen.map((each) => row(ctx, each, now)));
}

function row(ctx, each, now) {
  const silent = isSilent(each, now);
  const when = each.last === null ? 'never' : `${span(Math.max(0, now - each.last))} ago`;
  const title = each.last === null ? '' : stamp(each.last, ctx.zone(), ctx.settings.locale);
  const open = h(
    'button',
    { class: 'link', onclick: () => ctx.set({ view: 'series', host: each.host, fields: undefined, q: undefined }) },
    each.host,
  );
  return h(
    'tr',
    { 'data-silent': silent },
    h('td', { class: 'name' }, open),
    h('td', { title, 'data-tone': silent ? 'D' : undefined }, silent ? `silent: ${when}` : when),
    h('td', { class: 'number' }, String(each.series)),
    h('td', { class: 'number' }, each.rate.toLocaleString(ctx.settings.locale, { maximumFractionDigits: 1 })),
  );
}
