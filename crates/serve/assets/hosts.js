// The view of hosts: who sends values, when the last ones came, how many, what was lost, and whose clock is wrong.
// Those who fell silent come first.
import { h, text } from './dom.js';
import { fillEmpty } from './filling.js';
import { createNeighbours } from './neighbours.js';
import { createReceivers } from './receivers.js';
import { createScraped } from './scraped.js';
import { clockOf, lossWords, orderRows, readSenders } from './senders.js';
import { readStored } from './stored.js';
import { span, stamp } from './time.js';
import { counted } from './units.js';

const EVERY_MS = 10000;
const COLUMNS = [
  { name: 'host', title: 'host' },
  { name: 'when', title: 'last seen', number: true, left: true },
  { name: 'series', title: 'series', number: true },
  { name: 'rate', title: 'values/s', number: true },
  { name: 'lost', title: 'not taken', number: true },
  { name: 'away', title: 'clock offset', number: true },
];

export function createHosts(ctx, host) {
  const sub = h('span', { class: 'sub' });
  const input = h('input', {
    type: 'search',
    placeholder: 'filter',
    'aria-label': 'Filter hosts',
    spellcheck: 'false',
    oninput: () => draw(view),
  });
  const sockets = h('p', { class: 'sub foot sockets' });
  const types = h('p', { class: 'sub foot types', hidden: true });
  const lines = h('p', { class: 'sub foot lines', hidden: true });
  const body = h('tbody', {});
  const heads = COLUMNS.map((column) => head(column, () => sortBy(view, column)));
  const table = h('table', { class: 'hosts' }, h('thead', {}, h('tr', {}, heads)), body);
  const scroller = h('div', { class: 'scroller' }, table);
  const none = h('div', { hidden: true });
  const [scraped, neighbours, receivers] = [createScraped(ctx), createNeighbours(ctx), createReceivers(ctx)];
  host.append(
    scraped.panel,
    neighbours.panel,
    h(
      'section',
      { class: 'panel' },
      h('header', { class: 'bar' }, h('div', { class: 'when' }, h('h2', {}, 'Hosts'), sub), input),
      sockets,
      types,
      lines,
      scroller,
      none,
    ),
    receivers.panel,
  );
  const view = {
    ctx,
    scraped,
    neighbours,
    receivers,
    host,
    sub,
    input,
    sockets,
    types,
    lines,
    body,
    heads,
    scroller,
    none,
    rows: null,
    sort: '',
  };
  setInterval(() => !host.hidden && !document.hidden && load(view), EVERY_MS);
  return {
    show: () => load(view),
    refresh: () => load(view),
    rebuild: () => draw(view),
    focusFilter: () => input.focus(),
  };
}

const head = ({ title, number, left }, onclick) =>
  h('th', { class: number && !left ? 'number' : '', scope: 'col' }, h('button', { onclick }, title));

/** The column's order, then the other way round, then as it was. */
function sortBy(view, { name, number }) {
  const turns = number ? [`-${name}`, name, ''] : [name, `-${name}`, ''];
  view.sort = turns[turns.indexOf(view.sort) + 1] ?? turns[0];
  view.heads.forEach((each, n) => {
    const sorted = COLUMNS[n].name === view.sort.replace('-', '');
    if (!sorted) each.removeAttribute('aria-sort');
    else each.setAttribute('aria-sort', view.sort.startsWith('-') ? 'descending' : 'ascending');
  });
  draw(view);
}

async function load(view) {
  try {
    const [stored, senders] = await Promise.all([view.ctx.api.get('stored'), view.ctx.api.get('hosts')]);
    view.rows = readSenders(readStored(stored).hosts, senders);
    view.now = senders.now;
    sayLost(view, senders.sockets);
    sayTypes(view, senders.types);
    sayLines(view, senders.lines, senders.pushers);
    view.scraped.draw(senders.scraped, senders.now);
    view.neighbours.load(senders.scraped);
    view.receivers.draw(senders.receivers);
    draw(view);
  } catch (error) {
    view.body.replaceChildren(h('tr', {}, h('td', { colspan: COLUMNS.length, class: 'quiet' }, error.message)));
  }
}

/** Whose the datagrams were that the kernel dropped is not known. */
function sayLost({ sockets: line }, sockets) {
  const said = sockets.map(({ name, lost }) => `${name}: ${counted(lost, 'datagram')} lost in the kernel`);
  text(line, said.join(' · '));
  line.hidden = !said.length;
  line.dataset.tone = sockets.some(({ lost }) => lost > 0) ? 'D' : '';
}

/** Counts of listeners for lines, and of senders that push over HTTP, since the keeper's start. */
function sayLines({ lines: line, ctx }, lines, pushers) {
  const number = (value) => value.toLocaleString(ctx.settings.locale);
  const many = (count, noun) => counted(count, noun, ctx.settings.locale);
  // Targets have a table of their own, which does not say samples that the keeper refused.
  const senders = pushers.filter(({ protocol, refused }) => protocol !== 'scrape' || refused.length);
  const all = [
    ...lines.map((each) => ({
      ...each,
      name: each.protocol,
      noun: each.protocol === 'traps' ? 'event' : 'sample',
      counts: `${many(each.datagrams, 'datagram')}, ${many(each.clients, 'connection')}`,
    })),
    ...senders.map((each) => ({
      ...each,
      name: `${each.protocol} from ${each.sender || 'further senders'}`,
      noun: 'sample',
      counts: `${many(each.requests, 'request')}, ${number(each.series)} new series`,
    })),
  ];
  const said = all.map(({ name, samples, noun, counts, refused }) => {
    const lost = refused.reduce((sum, { count }) => sum + count, 0);
    const rest = lost ? `, ${number(lost)} not accepted` : '';
    return `${name}: ${many(samples, noun)}, ${counts}${rest}`;
  });
  text(line, said.join(' · '));
  line.title = all
    .flatMap(({ name, refused }) => refused.map(({ why, count }) => `${name}: ${number(count)} × ${why}`))
    .join('\n');
  line.hidden = !said.length;
  line.dataset.tone = all.some(({ refused }) => refused.length) ? 'D' : '';
}

/** Types that types.db lacks, or has with another number of sources: their values have names of no meaning. */
function sayTypes({ types: line }, types) {
  const said = types.map(({ type, known, values }) =>
    known ? `${type} (${known} sources there, ${values} came)` : `${type} (not there)`,
  );
  text(line, `not as types.db has them: ${said.join(', ')}; see [collectd] types_db`);
  line.title = types.map(({ series }) => series).join('\n');
  line.hidden = !said.length;
  line.dataset.tone = 'D';
}

function draw(view) {
  const { sub, input, body, rows, now, sort } = view;
  if (!rows) return;
  const wanted = input.value.toLowerCase();
  const fits = ({ host, address }) => `${host ?? ''} ${address ?? ''}`.toLowerCase().includes(wanted);
  const hosts = rows.filter(({ host }) => host !== null);
  const silent = hosts.filter((each) => each.silent).length;
  text(
    sub,
    hosts.length
      ? `${hosts.length} send${silent ? `, ${silent} silent` : ''}; a click shows what a host sends`
      : 'no collectd has sent anything yet',
  );
  view.none.hidden = rows.length > 0;
  view.scroller.hidden = !rows.length;
  if (!rows.length) fillEmpty(view.none, view.ctx, ['collectd']);
  body.replaceChildren(...orderRows(rows.filter(fits), now, sort).map((each) => row(view, each)));
}

function row({ ctx, now }, each) {
  const when = each.when === null ? 'never' : `${span(Math.max(0, now - each.when))} ago`;
  const title = each.when === null ? '' : stamp(each.when, ctx.zone(), ctx.settings.locale);
  const number = (value) => value.toLocaleString(ctx.settings.locale, { maximumFractionDigits: 1 });
  return h(
    'tr',
    { 'data-silent': each.silent },
    h('td', { class: 'name' }, nameOf(ctx, each)),
    h('td', { title, 'data-tone': each.silent ? 'D' : undefined }, each.silent ? `silent: ${when}` : when),
    h('td', { class: 'number' }, String(each.series)),
    h('td', { class: 'number' }, number(each.rate)),
    lossCell(each, number),
    clockCell(each),
  );
}

function nameOf(ctx, { host, address }) {
  if (host === null) return `${address ?? 'further senders'} (no host)`;
  const onclick = () => ctx.set({ view: 'series', host, fields: undefined, q: undefined });
  return h('button', { class: 'link', title: address ? `sent by ${address}` : '', onclick }, host);
}

/** Losses are counted by sender: one that sends for several hosts has the same beside each. */
function lossCell({ losses, lost, address }, number) {
  if (lost === null) return h('td', { class: 'number quiet', title: 'counted for what collectd sends' }, '–');
  const words = [`since the keeper's start, of ${address ?? 'further senders'}:`, ...lossWords(losses)];
  const title = words.length > 1 ? words.join('\n') : '';
  return h('td', { class: 'number', title, 'data-tone': lost > 0 ? 'D' : undefined }, number(lost));
}

function clockCell(each) {
  const clock = clockOf(each);
  const title = each.offset === null ? '' : `${each.offset.toFixed(3)} s behind this clock`;
  const shown = clock ? `${span(each.away)} ${clock.word}` : '';
  return h('td', { class: 'number', title, 'data-tone': clock?.wrong ? 'D' : undefined }, shown);
}
