// Which charts the Now view has, and of which fields. A layer is what is drawn: a label, a colour's number, one field
// (`id`, where `:*` stands for all instances) or several and what to make of them (`ids`, `of`).
import { chartTitle, isStored, lineNames, parts } from './stored.js';

const layer = (id, label, colour) => ({ id, label, colour });
// of devices, those that did nothing in the range are left out
const device = (id, label) => ({ id, label, colour: 1, quiet: true });

const CPU_MODES = [
  layer('cpu.user', 'user', 1),
  layer('cpu.nice', 'nice', 2),
  layer('cpu.sys', 'sys', 3),
  layer('cpu.irq', 'irq', 4),
  layer('cpu.soft', 'soft', 5),
  layer('cpu.steal', 'steal', 6),
  layer('cpu.wait', 'wait', 7),
];

const programs = {
  ids: ['memory.used', 'memory.buffers', 'memory.cached', 'memory.slab'],
  label: 'programs',
  colour: 1,
  of: (used, ...others) =>
    Math.max(
      0,
      others.reduce((left, each) => left - each, used),
    ),
};

export const PANELS = [
  {
    id: 'cpu',
    title: 'CPU',
    stacked: true,
    most: 100,
    layers: CPU_MODES,
    peak: 'cpu.total',
    split: { label: 'each CPU', layers: [layer('cpu.total:*', '', 1)], most: 100 },
  },
  {
    id: 'load',
    title: 'Load',
    note: 'tasks',
    least: 1,
    layers: [
      layer('cpu.running', 'runnable', 6),
      layer('cpu.blocked', 'blocked', 3),
      layer('cpu.load1', '1 min', 1),
      layer('cpu.load5', '5 min', 2),
      layer('cpu.load15', '15 min', 4),
    ],
  },
  {
    id: 'memory',
    title: 'Memory',
    stacked: true,
    mostOf: 'memory',
    layers: [
      programs,
      layer('memory.slab', 'slab', 4),
      layer('memory.buffers', 'buffers', 3),
      layer('memory.cached', 'cached', 2),
    ],
  },
  {
    id: 'pressure',
    title: 'Pressure',
    note: 'time lost waiting',
    least: 5,
    layers: [
      layer('pressure.cpu_some', 'CPU', 1),
      layer('pressure.io_some', 'I/O', 3),
      layer('pressure.io_full', 'all for I/O', 4),
      layer('pressure.memory_some', 'memory', 2),
      layer('pressure.memory_full', 'all for memory', 5),
    ],
  },
  {
    id: 'disk',
    title: 'Disks',
    least: 1,
    filled: true,
    layers: [layer('disk.read_kb', 'read', 1), layer('disk.write_kb', 'written', 3)],
    split: { label: 'each disk', layers: [device('disk.read_kb:*', 'read'), device('disk.write_kb:*', 'written')] },
  },
  { id: 'busy', title: 'Disks busy', note: 'time with requests', most: 100, layers: [device('disk.util:*', '')] },
  {
    id: 'net',
    title: 'Network',
    least: 1,
    filled: true,
    layers: [layer('net.rx_kb', 'received', 1), layer('net.tx_kb', 'sent', 3)],
    split: { label: 'each interface', layers: [device('net.rx_kb:*', 'received'), device('net.tx_kb:*', 'sent')] },
  },
  {
    id: 'kernel',
    title: 'Kernel',
    least: 1,
    layers: [
      layer('cpu.ctxsw', 'context switches', 1),
      layer('cpu.intr', 'interrupts', 3),
      layer('cpu.forks', 'forks', 2),
      layer('memory.major_faults', 'major faults', 4),
    ],
  },
];

/** The panel as the reader has it: split into its instances or not. */
export function chosen(panel, split) {
  if (!panel.split || !split.includes(panel.id)) return panel;
  const { label, ...parts } = panel.split;
  return { ...panel, stacked: false, peak: undefined, ...parts };
}

/** A field's name in a legend: without what the title says, and without the `:*` that instances replace. */
function short(id, mixed) {
  if (isStored(id)) return lineNames([id, '@:'])[0];
  const name = id.replace(/:\*$/, '');
  return mixed ? name : name.slice(name.indexOf('.') + 1);
}

/** A panel of any fields, for what the reader puts together. */
export function panelOf(ids, index) {
  if (ids.every(isStored)) {
    const names = lineNames(ids);
    return {
      id: `board${index}`,
      title: chartTitle(ids),
      least: 0,
      layers: ids.map((id, n) => layer(id, names[n], n + 1)),
    };
  }
  const subsystems = new Set(ids.map((id) => (isStored(id) ? parts(id).host : id.split('.')[0])));
  const title = ids.length === 1 ? ids[0].replace(':*', '') : [...subsystems].join(' + ');
  return {
    id: `board${index}`,
    title,
    least: 0,
    layers: ids.map((id, n) => layer(id, short(id, subsystems.size > 1), n + 1)),
  };
}

/** All ids that panels need. */
export function fieldsOf(panels) {
  const ids = new Set();
  for (const { layers, peak } of panels) {
    for (const each of layers) for (const id of each.ids ?? [each.id]) ids.add(id);
    if (peak) ids.add(peak);
  }
  return [...ids];
}

const instanceOf = (id) => id.slice(id.indexOf(':') + 1);

/** Layers with `:*` spelled out by the fields that there are, in the order of their names as people count. */
export function expand(layers, known) {
  const all = [...known];
  const found = [];
  for (const each of layers) {
    if (!each.id?.endsWith(':*')) {
      found.push(each);
      continue;
    }
    const start = each.id.slice(0, -1);
    const ids = all
      .filter((id) => id.startsWith(start))
      .sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    for (const id of ids) found.push({ ...each, id, label: [instanceOf(id), each.label].filter(Boolean).join(' ') });
  }
  const several = found.length > layers.length || layers.some((each) => each.id?.endsWith(':*'));
  return several ? found.map((each, n) => ({ ...each, colour: n + 1 })) : found;
}

/** Whether a live field belongs to what was asked. */
export const wants = (ids) => (id) =>
  ids.some((each) => each === id || (each.endsWith(':*') && id.startsWith(each.slice(0, -1))));

/** The numbers of a layer, in base units. */
export function numbers(each, frame, of, factor) {
  const sources = (each.ids ?? [each.id]).map((id) => frame.fields.get(id));
  if (sources.some((field) => !field)) return null;
  const columns = sources.map((field) => field[of]);
  if (columns.some((column) => !column)) return null;
  if (!each.of) return factor === 1 ? columns[0] : columns[0].map((value) => (value === null ? null : value * factor));
  return columns[0].map((first, n) => {
    const values = columns.map((column) => column[n]);
    return values.some((value) => value === null || value === undefined) ? null : each.of(...values) * factor;
  });
}
