// Which charts the Now view has, and of which fields. A layer is what is drawn: a label, a colour's number, a field
// (`id`, where `:*` stands for all instances).
import { STANDARD } from './standard.js';
import { chartTitle, isStored, lineNames, parts } from './stored.js';

const layer = (id, label, colour) => ({ id, label, colour });
// of devices, those that did nothing in the range are left out
const device = (id, label) => ({ id, label, colour: 1, quiet: true });

const standard = (id, title, more) => ({ id, title, ...STANDARD[id], ...more });

export const PANELS = [
  standard('cpu', 'CPU', { split: { label: 'each CPU', layers: [layer('cpu.total:*', '', 1)], most: 100 } }),
  standard('load', 'Load', { note: 'tasks' }),
  standard('memory', 'Memory'),
  standard('pressure', 'Pressure', { note: 'time lost waiting' }),
  standard('disk', 'Disks', {
    split: { label: 'each disk', layers: [device('disk.read_kb:*', 'read'), device('disk.write_kb:*', 'written')] },
  }),
  {
    id: 'filesystems',
    title: 'Disk space',
    note: 'used',
    most: 100,
    known: { most: 12 },
    layers: [layer('filesystems.used_percent:*', '', 1)],
  },
  { id: 'busy', title: 'Disks busy', note: 'time with requests', most: 100, layers: [device('disk.util:*', '')] },
  standard('net', 'Network', {
    split: { label: 'each interface', layers: [device('net.rx_kb:*', 'received'), device('net.tx_kb:*', 'sent')] },
  }),
  standard('sockets', 'Sockets'),
  standard('files', 'Open files'),
  standard('kernel', 'Kernel'),
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

/** All ids that panels need, but for layers that are computed from others (`needs`). */
export function fieldsOf(panels) {
  const ids = new Set();
  for (const { layers, peak, needs } of panels) {
    for (const { id, parts } of layers) if (!parts) ids.add(id);
    for (const id of needs ?? []) ids.add(id);
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
    if (!each.id.endsWith(':*')) {
      found.push(each);
      continue;
    }
    const start = each.id.slice(0, -1);
    const ids = all
      .filter((id) => id.startsWith(start))
      .sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    for (const id of ids) found.push({ ...each, id, label: [instanceOf(id), each.label].filter(Boolean).join(' ') });
  }
  const several = found.length > layers.length || layers.some((each) => each.id.endsWith(':*'));
  return several ? found.map((each, n) => ({ ...each, colour: n + 1 })) : found;
}

/** Whether a live field belongs to what was asked. */
export const wants = (ids) => (id) =>
  ids.some((each) => each === id || (each.endsWith(':*') && id.startsWith(each.slice(0, -1))));

/** The numbers of a layer, in base units. */
export function numbers(each, frame, of, factor) {
  const column = frame.fields.get(each.id)?.[of];
  if (!column) return null;
  return factor === 1 ? column : column.map((value) => (value === null ? null : value * factor));
}
