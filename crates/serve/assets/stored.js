// The series that others sent, as they are found and shown: names as labels, hosts, charts of a host. No elements here.
// A stored field is `@host/plugin-instance/type-instance.rrd:column`, or `@{field="x",host="y"}:column`: a label set.

/** Lines in one chart of a host. */
const LINES = 16;
/** Fields that are asked for at once. */
const FIELDS = 500;
/** Gaps, or intervals, after which a host counts as silent. */
const SILENT = 3;

export const isStored = (id) => id.startsWith('@');

const isSet = (name) => name.startsWith('{');

/** Of a label set: whose it is, by which job, and what it is with all labels that are left. */
function partsOfSet(text, column) {
  const labels = new Map();
  for (const [, label, value] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
    labels.set(
      label,
      value.replace(/\\(.)/g, (_, letter) => (letter === 'n' ? '\n' : letter)),
    );
  const take = (label) => {
    const value = labels.get(label);
    labels.delete(label);
    return value;
  };
  const [field, job] = [take('field'), take('job')];
  const host = take(['host', 'publisher', 'server'].find((label) => labels.has(label)));
  const name = [field, ...[...labels].map(([label, value]) => `${label}=${value}`)].filter(Boolean).join(' ');
  return { host: host ?? '', folder: job ?? '', name, column };
}

/** Series whose commands are shown. */
const COMMANDS = 8;

/** Commands that remove what charts show of a time that was chosen: for an administrator, to be copied. */
export function removals(charts, chosen) {
  if (!chosen) return [];
  const stored = charts.flat().filter(isStored);
  const names = [...new Set(stored.map((id) => id.slice(1, id.lastIndexOf(':'))))];
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const [from, thru] = [Math.floor(chosen.from), Math.ceil(chosen.thru)];
  return names
    .slice(0, COMMANDS)
    .map((name) => `kymo series rm ${quoted(`name=${name}`)} --from ${from} --thru ${thru}`);
}

/** A stored field's parts for people: what it is of, and what it is. */
export function parts(id) {
  const colon = id.lastIndexOf(':');
  if (isSet(id.slice(1))) return partsOfSet(id.slice(1, colon), id.slice(colon + 1));
  const [host, ...rest] = id
    .slice(1, colon)
    .replace(/\.rrd$/, '')
    .split('/');
  const column = id.slice(colon + 1);
  if (!rest.length) return { host: '', folder: '', name: host, column };
  return { host, folder: rest.slice(0, -1).join('/'), name: rest.at(-1), column };
}

/** What a line is called beside others of the same chart: what all have in common is left to the title. */
export function lineNames(ids) {
  const found = ids.map((id) => {
    const { host, folder, name, column } = parts(id);
    return [host, ...cut(folder), ...cut(name), column === 'value' ? '' : column];
  });
  const differs = found[0].map((_, at) => at).filter((at) => found.some((each) => each[at] !== found[0][at]));
  return found.map(
    (each, n) =>
      differs
        .map((at) => each[at])
        .filter(Boolean)
        .join(' ') || parts(ids[n]).name,
  );
}

/** A name and its instance: `cpu-0` is `cpu` and `0`; of a label set its field and its labels. */
function cut(name) {
  const at = name.search(/[- ]/);
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at + 1)];
}

export function chartTitle(ids) {
  const all = ids.map(parts);
  const common = (part) => (all.every((each) => each[part] === all[0][part]) ? all[0][part] : '');
  const type = all.every((each) => typeOf(each.name) === typeOf(all[0].name)) ? typeOf(all[0].name) : '';
  const last = common('name') || type;
  return (
    [common('host'), common('folder'), last === common('folder') ? '' : last].filter(Boolean).join(' ') ||
    `${ids.length} series`
  );
}

const typeOf = (name) => cut(name)[0];

/** From the answer of /stored: a field for each column of each series, and the hosts. */
export function readStored({ series, definitions }) {
  const fields = [];
  const hosts = new Map();
  for (const [name, number, last, isTarget] of series) {
    const { step, columns } = definitions[number];
    for (const column of columns) {
      const id = `@${name}:${column.name}`;
      fields.push({ id, unit: column.unit, last, text: `${name} ${column.name}`.toLowerCase(), ...parts(id) });
    }
    if (!isTarget) count(hosts, name, step, last, columns.length);
  }
  return { fields, hosts: [...hosts.values()] };
}

function count(hosts, name, step, last, columns) {
  const slash = name.indexOf('/');
  // what the poller asked for is nothing that a host sends, nor is what it asks for no more
  if (slash < 0 || isSet(name) || name.startsWith('mrtg/')) return;
  const host = name.slice(0, slash);
  if (!hosts.has(host)) hosts.set(host, { host, series: 0, last: null, step: Infinity, rate: 0 });
  const entry = hosts.get(host);
  entry.series += 1;
  if (last !== null && (entry.last === null || last > entry.last)) entry.last = last;
  if (step > 0) {
    entry.step = Math.min(entry.step, step);
    entry.rate += columns / step;
  }
}

/** Silent ones first, the longest silent before the others, then by name. */
export function orderHosts(hosts, now) {
  const silent = (each) => isSilent(each, now);
  return [...hosts].sort(
    (a, b) =>
      silent(b) - silent(a) ||
      (silent(a) ? since(a) - since(b) : 0) ||
      a.host.localeCompare(b.host, undefined, { numeric: true }),
  );
}

const since = ({ seen, last }) => seen ?? last ?? 0;

/** `seen` and `gap` are the keeper's, of who sends by collectd's protocol; others have their last value's stamp. */
export function isSilent({ last, step, seen = null, gap = null }, now) {
  const usual = Number.isFinite(step) ? step : 300;
  if (seen !== null) return now - seen > Math.max(SILENT * (gap ?? usual), 2 * usual);
  return last === null || now - last > SILENT * usual;
}

/** Every word must be found in the name. */
export function searchStored(fields, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? fields.filter(({ text }) => words.every((word) => text.includes(word))) : fields;
}

/** host → folder → fields, each in the order of people. */
export function treeOf(fields) {
  const hosts = new Map();
  for (const field of fields) {
    const host = field.host || '(no host)';
    if (!hosts.has(host)) hosts.set(host, new Map());
    const folders = hosts.get(host);
    if (!folders.has(field.folder)) folders.set(field.folder, []);
    folders.get(field.folder).push(field);
  }
  return hosts;
}

/** The charts of a host: what is of one plugin and one type in one chart. */
export function chartsOf(fields, host) {
  const charts = new Map();
  for (const field of fields) {
    if (field.host !== host) continue;
    const key = `${typeOf(field.folder)} ${typeOf(field.name)} ${field.unit}`;
    if (!charts.has(key)) charts.set(key, []);
    charts.get(key).push(field.id);
  }
  let room = FIELDS;
  const cut = [...charts.values()].flatMap((ids) => slices(ids, LINES));
  return cut.filter((ids) => (room -= ids.length) >= 0);
}

function slices(list, length) {
  const found = [];
  for (let at = 0; at < list.length; at += length) found.push(list.slice(at, at + length));
  return found;
}
