// The charts of a host that sends by collectd's protocol, by the meaning of its plugins: CPUs added up by state, memory
// stacked, interfaces, disks, file systems as shares, load. All other series have a chart for each plugin and type. No
// elements here.
import { panelOf } from './panels.js';
import { chartsOf } from './stored.js';

const STATES = ['user', 'nice', 'system', 'interrupt', 'softirq', 'steal', 'wait'];
const MEMORY = ['used', 'slab_unrecl', 'slab_recl', 'buffered', 'cached', 'free'];
const MEMORY_LABELS = { used: 'programs', slab_unrecl: 'slab', slab_recl: 'slab, reclaimable', buffered: 'buffers' };
const LOADS = { shortterm: '1 min', midterm: '5 min', longterm: '15 min' };
/** Interfaces or disks with a chart of their own. */
const DEVICES_MAX = 12;
/** Fields of the CPUs that are added up: 256 CPUs with eight states. */
const CPU_FIELDS_MAX = 2048;
/** Fields of all other charts of a host. */
const FIELDS_MAX = 500;
/** The colour of memory that is free. */
const GREY = 6;

/** Panels of a host's charts. `fields` are those of `readStored`. */
export function hostPanels(fields, host) {
  const own = fields.filter((field) => field.host === host);
  const used = new Set();
  const take = (panel) => {
    if (!panel) return [];
    for (const id of panel.takes) used.add(id);
    return [panel];
  };
  const known = [
    ...take(cpuPanel(own, host)),
    ...take(loadPanel(own)),
    ...take(memoryPanel(own)),
    ...take(filesystemPanel(own, host)),
    ...devicePanels(own, { plugin: 'interface', type: 'if_octets', columns: NET }).flatMap(take),
    ...devicePanels(own, { plugin: 'disk', type: 'disk_octets', columns: DISK }).flatMap(take),
  ];
  const rest = own.filter(({ id }) => !used.has(id));
  let room = FIELDS_MAX;
  const others = chartsOf(rest, host).filter((ids) => (room -= ids.length) >= 0);
  return [...known, ...others.map((ids, index) => panelOf(ids, `host${index}`))];
}

const NET = { rx: 'received', tx: 'sent' };
const DISK = { read: 'read', write: 'written' };
const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true });

/** The rest of a name behind `PREFIX-`; null for another name, '' for the prefix alone. */
function behind(name, prefix) {
  if (name === prefix) return '';
  return name.startsWith(`${prefix}-`) ? name.slice(prefix.length + 1) : null;
}

/** CPU → state → field. */
function cpusOf(fields) {
  const cpus = new Map();
  for (const { id, folder, name, column } of fields) {
    const cpu = behind(folder, 'cpu');
    const state = behind(name, 'cpu') ?? behind(name, 'percent');
    if (cpu === null || !state || column !== 'value') continue;
    if (!cpus.has(cpu)) cpus.set(cpu, new Map());
    cpus.get(cpu).set(state, id);
  }
  return cpus;
}

function cpuPanel(fields, host) {
  const cpus = cpusOf(fields);
  const takes = [...cpus.values()].flatMap((states) => [...states.values()]);
  if (!takes.length || takes.length > CPU_FIELDS_MAX) return null;
  const found = new Set([...cpus.values()].flatMap((states) => [...states.keys()]));
  const states = [...STATES.filter((state) => found.has(state)), ...[...found].filter(isOther).sort()];
  const sum = (state, n) => ({
    id: `@${host}/cpu-all/share-${state}:value`,
    label: state,
    colour: n + 1,
    parts: [...cpus.values()].map((each) => each.get(state)).filter(Boolean),
    whole: takes,
    help: `time in state ${state}, of all CPUs`,
  });
  const busy = (cpu, n) => ({
    id: `@${host}/cpu-all/busy-${cpu}:value`,
    label: cpu || 'all',
    colour: n + 1,
    parts: [...cpus.get(cpu)].filter(([state]) => state !== 'idle').map(([, id]) => id),
    whole: [...cpus.get(cpu).values()],
    help: `time of CPU ${cpu} that it was not idle`,
  });
  const layers = states.map(sum);
  const each = [...cpus.keys()].sort(byName).map(busy);
  const panel = { id: 'hostcpu', title: 'CPU', note: 'of all CPUs', stacked: true, most: 100, takes, needs: takes };
  const split = cpus.size > 1 ? { label: 'each CPU', note: 'busy', layers: each, add: adder(each) } : undefined;
  return { ...panel, layers, add: adder(layers), split };
}

const isOther = (state) => state !== 'idle' && !STATES.includes(state);

/** Puts shares in percent into a frame: the sum of a layer's parts, of the sum of its whole. */
const adder = (layers) => (frame) => {
  for (const { id, parts, whole, help } of layers) {
    const [part, all] = [sums(frame, parts), sums(frame, whole)];
    const avg = all.map((value, n) => (value > 0 && part[n] !== null ? (100 * part[n]) / value : null));
    frame.fields.set(id, { id, unit: '%', help, avg, min: null, max: null });
  }
};

/** Of each point the sum of these fields; null where none is known. */
function sums(frame, ids) {
  const total = new Array(frame.count).fill(null);
  for (const id of ids) {
    const values = frame.fields.get(id)?.avg ?? [];
    for (let n = 0; n < frame.count; n++) {
      if (values[n] !== null && values[n] !== undefined) total[n] = (total[n] ?? 0) + values[n];
    }
  }
  return total;
}

function loadPanel(fields) {
  const found = fields.filter(({ folder, name, column }) => folder === 'load' && name === 'load' && column in LOADS);
  const order = Object.keys(LOADS);
  found.sort((a, b) => order.indexOf(a.column) - order.indexOf(b.column));
  const layers = found.map(({ id, column }, n) => ({ id, label: LOADS[column], colour: n + 1 }));
  return layers.length
    ? { id: 'hostload', title: 'Load', note: 'tasks', least: 1, layers, takes: idsOf(layers) }
    : null;
}

const idsOf = (layers) => layers.map(({ id }) => id);

function memoryPanel(fields) {
  const kinds = new Map();
  for (const kind of ['memory', 'percent']) {
    for (const { id, folder, name, column } of fields) {
      const part = behind(name, kind);
      if (folder === 'memory' && part && column === 'value' && !kinds.has(part)) kinds.set(part, { id, kind });
    }
    // bytes and shares are not stacked on each other
    if (kinds.size) break;
  }
  if (!kinds.size) return null;
  const names = [
    ...MEMORY.filter((name) => kinds.has(name)),
    ...[...kinds.keys()].filter((name) => !MEMORY.includes(name)),
  ];
  const layers = names.map((name, n) => ({
    id: kinds.get(name).id,
    label: MEMORY_LABELS[name] ?? name,
    colour: name === 'free' ? GREY : n + 1,
  }));
  const most = [...kinds.values()][0].kind === 'percent' ? 100 : undefined;
  return { id: 'hostmemory', title: 'Memory', stacked: true, most, layers, takes: idsOf(layers) };
}

/** Used, free and reserved bytes of each file system, by its name. */
function filesystemsOf(fields) {
  const found = new Map();
  for (const { id, folder, name, column } of fields) {
    const instance = behind(folder, 'df');
    if (instance === null) continue;
    const old = behind(name, 'df');
    const [mount, part] = old ? [old, column] : [instance, behind(name, 'df_complex')];
    if (!mount || !part) continue;
    if (!found.has(mount)) found.set(mount, {});
    found.get(mount)[part] = id;
  }
  return found;
}

function filesystemPanel(fields, host) {
  const mounts = [...filesystemsOf(fields)].filter(([, { used, free }]) => used && free);
  mounts.sort(([a], [b]) => byName(a, b));
  if (!mounts.length) return null;
  const layers = mounts.map(([mount, { used, free }], n) => ({
    id: `@${host}/df-all/used-${mount}:value`,
    label: mount,
    colour: n + 1,
    parts: [used],
    whole: [used, free],
    help: `part of file system ${mount} that is used`,
  }));
  const needs = layers.flatMap(({ whole }) => whole);
  const takes = mounts.flatMap(([, parts]) => Object.values(parts));
  return { id: 'hostdf', title: 'File systems', note: 'used', most: 100, layers, needs, takes, add: adder(layers) };
}

/** Percent from which a file system is a problem. */
const FULL = 90;

/** File systems of a host that are nearly full at the end of a frame, the fullest first. */
export function fullOf(frame, host) {
  const start = `@${host}/df-all/used-`;
  const found = [];
  for (const { id, avg } of frame?.fields.values() ?? []) {
    const last = id.startsWith(start) ? avg.findLast((value) => value !== null && value !== undefined) : undefined;
    if (last >= FULL) found.push({ mount: id.slice(start.length, id.lastIndexOf(':')), last });
  }
  found.sort((a, b) => b.last - a.last);
  return found.map(({ mount, last }) => ({ text: `file system ${mount} is ${last.toFixed(0)} % full` }));
}

/** A chart for each device of a plugin, of these columns of its type. */
function devicePanels(fields, { plugin, type, columns }) {
  const devices = new Map();
  for (const { id, folder, name, column } of fields) {
    const device = behind(folder, plugin) || (folder === plugin && behind(name, type));
    const isType = name === type || (folder === plugin && behind(name, type));
    if (!device || !isType || !(column in columns)) continue;
    if (!devices.has(device)) devices.set(device, new Map());
    devices.get(device).set(column, id);
  }
  const names = [...devices.keys()].filter((name) => !isPartition(name, devices));
  names.sort((a, b) => (a === 'lo') - (b === 'lo') || byName(a, b));
  return names.slice(0, DEVICES_MAX).map((device) => {
    const known = devices.get(device);
    const layers = Object.entries(columns)
      .filter(([column]) => known.has(column))
      .map(([column, label], n) => ({ id: known.get(column), label, colour: n ? 3 : 1 }));
    const note = Object.values(columns).join(', ');
    return { id: `host${plugin}${device}`, title: device, note, least: 1, filled: true, layers, takes: idsOf(layers) };
  });
}

/** `sda1` beside `sda`, `nvme0n1p2` beside `nvme0n1`. */
function isPartition(name, devices) {
  const whole = name.replace(/p?\d+$/, '');
  return whole !== name && devices.has(whole);
}
