// The line that always says what kymo costs and how far back it reaches.
import { dialog, h, text } from './dom.js';
import { receiverWords } from './receivers.js';
import { span, stamp } from './time.js';
import { bytes, counted, fine, format } from './units.js';

const EVERY_MS = 10000;

export function createCost(ctx, host) {
  const line = h('button', {
    class: 'costline',
    title: 'What each of kymo’s processes costs',
    onclick: () => ctx.cost && details(ctx),
  });
  const reach = h('span', { class: 'reach' });
  host.append(line, reach);
  const view = { ctx, line, reach };
  const refresh = async () => {
    if (!document.hidden) ctx.cost = await ctx.api.get('cost').catch(() => ctx.cost);
    draw(view);
  };
  const poll = async () => {
    await refresh();
    setTimeout(poll, EVERY_MS);
  };
  poll();
  return { draw: () => draw(view), refresh };
}

/** `kymo costs 0.12 % of a CPU, 11 MB, 31 MB a day · 0 samples missed`. */
export function sentence(cost, settings) {
  const percent = fine(cost.cpu_percent, settings);
  const lost = cost.dropped ? ` · ${cost.dropped} dropped` : '';
  const disk = cost.bytes_a_day === null ? '' : `, ${bytes(cost.bytes_a_day, settings)} a day`;
  const memory = bytes(cost.memory_bytes, settings);
  const missed = `${counted(cost.missed, 'sample')} missed`;
  return `kymo costs ${percent} of a CPU, ${memory} of memory${disk} · ${missed}${lost}`;
}

function draw({ ctx, line, reach }) {
  if (ctx.cost) text(line, sentence(ctx.cost, ctx.settings));
  if (!ctx.status) return;
  const { from, recorded_from: recorded } = ctx.status;
  // Nothing is recorded yet.
  if (!from) return text(reach, '');
  const when = (time) => stamp(time, ctx.zone(), ctx.settings.locale);
  const older = recorded - from > 60 ? `; every sample since ${when(recorded)}` : '';
  const length = span((ctx.edge ?? ctx.status.thru) - from);
  const elsewhere = backupWords(ctx.status.backup) + receiverWords(ctx.status.receivers);
  text(reach, `reaches back to ${when(from)} (${length})${older}${elsewhere}`);
}

/** ` · backed up 5 min ago`, what it lacks, and whether the last one failed. */
export function backupWords(backup) {
  if (!backup) return '';
  const made = backup.age === null ? 'not backed up yet' : `backed up ${span(backup.age)} ago`;
  const without = backup.left_out ? ` without ${counted(backup.left_out, 'file')}` : '';
  return ` · ${made}${without}${backup.failed ? ', the last backup failed' : ''}`;
}

function details({ cost, settings, status }) {
  const row = (...cells) =>
    h(
      'tr',
      {},
      cells.map((each, n) => h('td', { class: n ? 'number' : '' }, each)),
    );
  const head = h(
    'tr',
    {},
    ['Process', 'PID', 'CPU', 'CPU time', 'Memory'].map((each, n) => h('th', { class: n ? 'number' : '' }, each)),
  );
  const growth = cost.bytes_a_day === null ? '' : ` and grows by ${bytes(cost.bytes_a_day, settings)} a day`;
  dialog(
    'What kymo costs',
    h(
      'table',
      {},
      h('thead', {}, head),
      h(
        'tbody',
        {},
        cost.processes.map((each) =>
          row(
            each.name,
            String(each.pid),
            fine(each.cpu_percent, settings),
            format(each.cpu_seconds, 's', '', settings),
            bytes(each.memory_bytes, settings),
          ),
        ),
      ),
    ),
    h(
      'p',
      {},
      `The recording in ${status?.path ?? 'its folder'} holds ${bytes(cost.bytes_held, settings)}${growth}. `,
      'Memory is what is anonymous or shared; CPU is of one CPU over the last minute.',
    ),
  );
}
