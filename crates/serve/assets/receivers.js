// The receivers of [[forward]], as a table in the view of hosts, and in words: those that are down come first.
import { h, text } from './dom.js';
import { span } from './time.js';
import { bytes, counted } from './units.js';

const COLUMNS = ['receiver', 'state', 'behind', 'sent', 'refused', 'missed', 'sent again'];
const WORDS = ['receiver', 'state'];
/** Seconds that a receiver may be behind without a word: samples gather for some of them. */
const BEHIND_S = 30;

/** A panel without receivers is hidden. */
export function createReceivers(ctx) {
  const sub = h('span', { class: 'sub' });
  const body = h('tbody', {});
  const heads = COLUMNS.map((title) => h('th', { class: WORDS.includes(title) ? '' : 'number', scope: 'col' }, title));
  const table = h('table', { class: 'receivers' }, h('thead', {}, h('tr', {}, heads)), body);
  const title = h('div', { class: 'when' }, h('h2', {}, 'Receivers'), sub);
  const panel = h('section', { class: 'panel', hidden: true }, h('header', { class: 'bar' }, title));
  panel.append(h('div', { class: 'scroller' }, table));
  return { panel, draw: (receivers) => draw({ ctx, panel, sub, body }, receivers) };
}

function draw({ ctx, panel, sub, body }, receivers) {
  panel.hidden = !receivers.length;
  const down = receivers.filter(({ up }) => !up).length;
  text(sub, `${counted(receivers.length, 'receiver')}${down ? `, ${down} down` : ''}`);
  sub.dataset.tone = down ? 'D' : '';
  body.replaceChildren(...orderReceivers(receivers).map((each) => row(ctx, each)));
}

/** Receivers that are down first, then those that are furthest behind, then by name. */
export function orderReceivers(receivers) {
  return [...receivers].sort(
    (a, b) => Number(a.up) - Number(b.up) || b.backlog_age - a.backlog_age || a.name.localeCompare(b.name),
  );
}

/** ` · forwards to 2 receivers`, and how far the worst is behind. */
export function receiverWords(receivers) {
  if (!receivers?.length) return '';
  const [worst] = orderReceivers(receivers);
  const late = worst.backlog_age > BEHIND_S ? `${span(worst.backlog_age)} behind` : '';
  const state = [worst.up ? '' : 'down', late].filter(Boolean).join(', ');
  return ` · forwards to ${counted(receivers.length, 'receiver')}${state ? `, ${worst.name} is ${state}` : ''}`;
}

function row({ settings }, each) {
  const { locale } = settings;
  const count = (value, bad) =>
    h('td', { class: 'number', 'data-tone': bad && value ? 'D' : undefined }, value.toLocaleString(locale));
  const behind = each.backlog_bytes ? `${span(each.backlog_age)}, ${bytes(each.backlog_bytes, settings)}` : '–';
  return h(
    'tr',
    {},
    h('td', { class: 'name' }, each.name),
    h('td', { 'data-tone': each.up ? undefined : 'D' }, each.up ? 'up' : 'down'),
    h('td', { class: 'number' }, behind),
    count(each.sent),
    count(each.refused, true),
    count(each.missed, true),
    count(each.failed),
  );
}
