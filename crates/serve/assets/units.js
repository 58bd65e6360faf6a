// Numbers in the reader's units: how a value with a unit of docs/metrics.md is written.
// Charts draw in base units (bytes, bits, seconds), so that the ticks are round in what is shown.

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const UNITS = {
  '%': { factor: 1, kind: 'percent' },
  'KiB/s': { factor: 1024, kind: 'bytes', rate: true },
  'B/s': { factor: 1, kind: 'bytes', rate: true },
  KiB: { factor: 1024, kind: 'bytes' },
  B: { factor: 1, kind: 'bytes' },
  '1/s': { factor: 1, kind: 'count', rate: true },
  count: { factor: 1, kind: 'count' },
  // load averages are counts of tasks too: they share a scale
  '': { factor: 1, kind: 'count' },
  ms: { factor: 0.001, kind: 'seconds' },
  us: { factor: 0.000001, kind: 'seconds' },
  s: { factor: 1, kind: 'seconds' },
  'Mbit/s': { factor: 1e6, kind: 'bits', rate: true },
};

/** A number with its noun: "1 connection", "1,234 connections". */
export const counted = (n, noun, locale) => `${n.toLocaleString(locale)} ${noun}${n === 1 ? '' : 's'}`;

/** What a field is drawn in: factor from the recorded unit, kind, and whether it is a rate. */
export function measure(unit, id, settings) {
  const known = UNITS[unit] ?? { factor: 1, kind: 'plain', suffix: unit };
  const bits = settings.bits && known.kind === 'bytes' && known.rate && id.startsWith('net.');
  return bits ? { factor: known.factor * 8, kind: 'bits', rate: true } : known;
}

const formats = new Map();
function digits(value, most, locale) {
  const key = `${most} ${locale}`;
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(locale, { maximumFractionDigits: most }));
  return formats.get(key).format(value);
}

/** Three figures or so: 0.12, 1.2, 12.3, 123. */
function figures(value, locale) {
  const size = Math.abs(value);
  return digits(value, size >= 100 ? 0 : size >= 1 ? 1 : 2, locale);
}

function scaled(value, base, prefixes) {
  let power = 0;
  for (let size = Math.abs(value); size >= base * 0.9995 && power < prefixes.length - 1; size /= base) power += 1;
  return [value / base ** power, prefixes[power]];
}

/** A value in a measure's base unit as [number, unit]; the axis leaves `/s` to the title. */
function parts(value, { kind, suffix }, settings) {
  const { locale } = settings;
  if (kind === 'percent')
    return [digits(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 0.1 ? 1 : 2, locale), '%'];
  if (kind === 'bytes') {
    const binary = settings.bytes !== 'decimal';
    const [number, prefix] = scaled(value, binary ? 1024 : 1000, binary ? BINARY : DECIMAL);
    return [prefix === '' ? digits(number, 0, locale) : figures(number, locale), prefix + 'B'];
  }
  if (kind === 'bits') {
    const [number, prefix] = scaled(value, 1000, DECIMAL);
    return [figures(number, locale), prefix + 'bit'];
  }
  if (kind === 'seconds') return seconds(value, locale);
  if (Math.abs(value) < 10000) return [figures(value, locale), suffix ?? ''];
  const [number, prefix] = scaled(value, 1000, DECIMAL);
  return [figures(number, locale), prefix + (suffix ?? '')];
}

function seconds(value, locale) {
  const size = Math.abs(value);
  if (size === 0) return ['0', 's'];
  if (size < 0.001) return [figures(value * 1e6, locale), 'µs'];
  if (size < 1) return [figures(value * 1000, locale), 'ms'];
  if (size < 120) return [figures(value, locale), 's'];
  return size < 7200 ? [figures(value / 60, locale), 'min'] : [figures(value / 3600, locale), 'h'];
}

const join = (number, unit) => (unit === '' ? number : unit === '%' ? `${number} %` : `${number} ${unit}`);

/** A recorded value for reading: `1.2 MiB/s`; what is not known is a dash. */
export function format(value, unit, id, settings) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const as = measure(unit, id, settings);
  const [number, name] = parts(value * as.factor, as, settings);
  return join(number, as.rate ? `${name}/s` : name);
}

/** A value in base units for an axis. */
export function tick(value, as, settings) {
  if (value === 0) return '0';
  const [number, name] = parts(value, as, settings);
  // there is room for a short unit
  if (as.kind === 'plain' && as.suffix.length > 2) return number;
  return join(number, name)
    .replace(' %', '%')
    .replace(/ (?=[kMGTP]$)/, '');
}

/** A share so small that its second digit counts. */
export const fine = (value, { locale }) => (value === null ? '–' : `${digits(value, 2, locale)} %`);

/** Plain bytes, for sizes that are no field. */
export const bytes = (value, settings) => format(value, 'B', '', settings);

/** Steps between ticks that are round in what is shown. */
export function increments(as, settings) {
  const found = [];
  if (as.kind === 'bytes' && settings.bytes !== 'decimal') {
    for (let power = 0; power < 50; power++) found.push(2 ** power);
    return found;
  }
  for (let power = -6; power < 16; power++) for (const one of [1, 2, 5]) found.push(Number(`${one}e${power}`));
  return found;
}
