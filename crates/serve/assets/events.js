// The view of events: gaps, missed samples, clocks set, starts, what hosts that send notified, and what happened to
// devices that are polled. A click goes there.
import { h } from './dom.js';
import { span, stamp } from './time.js';

const KINDS = {
  gap: 'nothing is known',
  missed: 'samples were not taken in time',
  slow: 'a kernel file was slow to read',
  clock: 'the wall clock was set',
  suspend: 'the machine slept',
  boot: 'the machine booted',
  start: 'a recorder started',
  note: 'a note',
  failure: 'a host says that something is wrong, or a device does not answer',
  warning: 'a host warns, or a device was started again',
  okay: 'a host says that it is well again, or a device answers again',
};
const ROOM = 60;

export function createEvents(ctx, host) {
  const body = h('ul', { class: 'events' });
  const only = h(
    'select',
    { 'aria-label': 'Kind of event', onchange: () => draw(view) },
    h('option', { value: '' }, 'all kinds'),
    Object.keys(KINDS).map((kind) => h('option', { value: kind }, kind)),
  );
  host.append(
    h(
      'section',
      { class: 'panel' },
      h(
        'header',
        { class: 'bar' },
        h('div', { class: 'when' }, h('h2', {}, 'Events'), h('span', { class: 'sub' }, 'all there are, newest first')),
        only,
      ),
      body,
    ),
  );
  const view = { ctx, body, only, marks: null };
  return {
    show: () => load(view),
    refresh: () => load(view),
    rebuild: () => draw(view),
    mark: (mark) => {
      view.marks?.push(mark);
      draw(view);
    },
  };
}

async function load(view) {
  try {
    const { from } = view.ctx.status ?? {};
    view.marks = (await view.ctx.api.get('events', { from: from ?? 0, thru: 'now' })).marks;
    draw(view);
  } catch (error) {
    view.body.replaceChildren(h('li', { class: 'note' }, error.message));
  }
}

function draw({ ctx, body, only, marks }) {
  if (!marks) return;
  const seen = marks.filter((mark) => !only.value || mark.kind === only.value).sort((a, b) => b.time - a.time);
  if (!seen.length) return body.replaceChildren(h('li', { class: 'quiet' }, 'No events: nothing was missed.'));
  body.replaceChildren(
    ...seen.map((mark) =>
      h(
        'li',
        {},
        h(
          'button',
          { onclick: () => visit(ctx, mark), title: KINDS[mark.kind] ?? '' },
          h('time', {}, stamp(mark.time, ctx.zone(), ctx.settings.locale)),
          h('em', { 'data-kind': mark.kind }, mark.kind),
          h('span', {}, mark.text),
          mark.until > mark.time ? h('small', {}, span(mark.until - mark.time)) : null,
        ),
      ),
    ),
  );
}

function visit(ctx, mark) {
  const { host, device } = mark;
  if (device) return ctx.set({ view: 'targets', q: device, target: undefined });
  ctx.set(host ? { view: 'series', host, fields: undefined, q: undefined } : { view: undefined });
  ctx.zoomTo(mark.time - ROOM, Math.max(mark.until, mark.time) + ROOM);
  ctx.set({ at: Math.min(mark.until + 1, ctx.edge ?? mark.until), b: undefined });
}
