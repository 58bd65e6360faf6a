// "Why?": what was unusual at the held moment or in the chosen range, and who did it. The server finds it.
import { h } from './dom.js';
import { clock } from './time.js';

/** Longest range that the server answers for. */
const RANGE_S = 6 * 3600;

/** The question of the page as it is: the held moment, or the chosen range; else null. */
export function question({ state, hover }) {
  if (state.b !== undefined) return null;
  if (state.at !== undefined) return { at: state.at };
  const { from, thru } = state;
  return hover === null && from !== undefined && thru - from <= RANGE_S ? { from, thru } : null;
}

/** The head of the answer: what was compared with what. */
export function against(ctx, { from, thru, before, samples, samples_before, days, coarse }) {
  const said = (time) => clock(time, ctx.zone(), ctx.settings.locale);
  if (!samples) return 'nothing was recorded then';
  if (!samples_before) return `${said(from)} to ${said(thru)}; nothing is known of the time before`;
  const minutes = Math.round((from - before) / 60);
  const earlier = days ? ` and ${days} earlier ${days > 1 ? 'days' : 'day'}` : '';
  const rare = coarse ? '; samples are far apart, so that short spikes are not seen' : '';
  return `${said(from)} to ${said(thru)} against ${minutes} min before${earlier}${rare}`;
}

/** The findings, each a button: a process goes into the filter, a field becomes a graph, an event is gone to. */
export function findings(ctx, { findings }) {
  if (!findings.length) return [h('p', { class: 'quiet' }, 'Nothing unusual.')];
  return [
    h(
      'ol',
      { class: 'why' },
      findings.map((each) => line(ctx, each)),
    ),
  ];
}

function line(ctx, finding) {
  const { text, command, parts } = finding;
  return h(
    'li',
    {},
    h('button', { onclick: () => ctx.set(link(finding)), title: command }, text),
    parts.length
      ? h(
          'ul',
          {},
          parts.map((part) => line(ctx, part)),
        )
      : null,
  );
}

/** What a line sets: filter, graph and moment. */
export function link({ comm, field, since, publisher }) {
  if (comm) return { filter: comm };
  if (field) return { view: 'fields', fields: [[field]] };
  if (publisher) return { view: 'programs' };
  return { at: since };
}
