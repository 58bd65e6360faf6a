// The targets that kymo scrapes, as a table in the view of hosts: those that fail come first, with the reason.
import { h, text } from './dom.js';
import { span, stamp } from './time.js';
import { counted } from './units.js';

const COLUMNS = ['job', 'target', 'state', 'last scrape', 'took', 'samples'];
const NUMBERS = ['took', 'samples'];

/** A panel without targets is hidden. */
export function createScraped(ctx) {
  const sub = h('span', { class: 'sub' });
  const body = h('tbody', {});
  const heads = COLUMNS.map((title) =>
    h('th', { class: NUMBERS.includes(title) ? 'number' : '', scope: 'col' }, title),
  );
  const table = h('table', { class: 'scraped' }, h('thead', {}, h('tr', {}, heads)), body);
  const title = h('div', { class: 'when' }, h('h2', {}, 'Scraped targets'), sub);
  const panel = h('section', { class: 'panel', hidden: true }, h('header', { class: 'bar' }, title));
  panel.append(h('div', { class: 'scroller' }, table));
  return { panel, draw: (targets, now) => draw({ ctx, panel, sub, body }, targets, now) };
}

function draw({ ctx, panel, sub, body }, targets, now) {
  panel.hidden = !targets.length;
  const down = targets.filter(({ error }) => error).length;
  text(sub, `${counted(targets.length, 'target')}${down ? `, ${down} down` : ''}`);
  sub.dataset.tone = down ? 'D' : '';
  body.replaceChildren(...orderTargets(targets).map((each) => row(ctx, each, now)));
}

/** Targets that fail first, then by job and URL. */
export function orderTargets(targets) {
  const rank = ({ error }) => (error ? 0 : 1);
  const name = ({ job, url }) => `${job} ${url}`;
  return [...targets].sort((a, b) => rank(a) - rank(b) || name(a).localeCompare(name(b)));
}

/** The state of a target in words. */
export const stateOf = ({ seen, error }) => (seen === null ? 'not scraped yet' : error ? `down: ${error}` : 'up');

function row(ctx, each, now) {
  const { locale } = ctx.settings;
  const when = each.seen === null ? '' : `${span(Math.max(0, now - each.seen))} ago`;
  const title = each.seen === null ? '' : stamp(each.seen, ctx.zone(), locale);
  const took = each.seen === null ? '' : `${each.duration.toLocaleString(locale, { maximumFractionDigits: 3 })} s`;
  return h(
    'tr',
    {},
    h('td', { class: 'name' }, each.job),
    h('td', {}, each.url),
    h('td', { 'data-tone': each.error ? 'D' : undefined }, stateOf(each)),
    h('td', { title }, when),
    h('td', { class: 'number' }, took),
    h('td', { class: 'number' }, each.samples.toLocaleString(locale)),
  );
}
