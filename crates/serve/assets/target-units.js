// Numbers, times and colours of targets, as MRTG has them. No elements here. A `unit` is that of /targets: {scale,
// factor, tics, kilo, prefixes, name, whole}.

const TURN = 10;
const DAY = 86400;
/** Contrast of a line to the paper, as WCAG reckons it. */
const CONTRAST = 3;

/** A number and the prefix that it gets; MRTG takes the next one where a number has five digits. */
function prefixed(number, { kilo, prefixes }, turn) {
  let at = 0;
  while (at + 1 < prefixes.length && (Math.abs(number) >= turn * kilo || prefixes[at] === null)) {
    number /= kilo;
    at += 1;
  }
  return [number, prefixes[at] ?? ''];
}

/** A stored rate as it stands below a graph: `12.3 Mb/s`. */
export function rateText(rate, unit) {
  if (rate === null || rate === undefined) return '–';
  const [number, prefix] = prefixed(rate * unit.scale * unit.factor, unit, TURN);
  return `${number.toFixed(unit.whole ? 0 : 1)} ${prefix}${unit.name}`.trimEnd();
}

/** The same with its part of MaxBytes, unless the target wants none. */
export function numberText(rate, unit, maxBytes, nopercent) {
  const text = rateText(rate, unit);
  if (nopercent || !maxBytes || rate === null || rate === undefined) return text;
  return `${text} (${((rate / maxBytes) * 100).toFixed(1)} %)`;
}

/** A number beside a graph: what is drawn is multiplied with `scale` already. */
export function ticText(value, unit) {
  if (!value) return value === 0 ? '0' : '';
  const [number, prefix] = prefixed(value * unit.tics, unit, 1);
  return `${Number(number.toPrecision(4))} ${prefix}`.trimEnd();
}

/** Steps between tics that are round in what is shown. */
export function ticSteps({ kilo, tics }) {
  const steps = [];
  for (let size = 1e-6 / Math.abs(tics), n = 0; n < 24; n += 1) {
    for (const one of [1, 2, 5, 10, 20, 50, 100, 200, 500]) if (one < kilo) steps.push(size * one);
    size *= n < 2 ? 1000 : kilo;
  }
  return steps.sort((a, b) => a - b);
}

/** Local midnights, Mondays, firsts of months or new years, which MRTG draws in red. */
export function turns(period, from, thru, zone) {
  const key = {
    day: ([y, m, d]) => dayNumber(y, m, d),
    week: weekNumber,
    month: ([y, m]) => y * 12 + m,
    year: ([y]) => y,
  };
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
  });
  const of = (time) => key[period](dateParts(format, time));
  const found = [];
  // a turn lies within a day that ends otherwise than it begins, and is at a quarter of an hour
  for (let begin = Math.floor(from / 900) * 900; begin < thru; begin += DAY) {
    let [low, high] = [begin, begin + DAY];
    const before = of(low);
    if (of(high) === before) continue;
    while (high - low > 900) {
      const middle = low + Math.floor((high - low) / 1800) * 900;
      if (of(middle) === before) low = middle;
      else high = middle;
    }
    if (high > from && high < thru) found.push(high);
  }
  return found;
}

function dateParts(format, time) {
  const parts = Object.fromEntries(format.formatToParts(time * 1000).map(({ type, value }) => [type, Number(value)]));
  return [parts.year, parts.month, parts.day];
}

const dayNumber = (year, month, day) => Date.UTC(year, month - 1, day) / 864e5;
// 1970 began on a Thursday
const weekNumber = ([year, month, day]) => Math.floor((dayNumber(year, month, day) + 3) / 7);

/** A colour that is seen on the paper: lighter or darker, where the configuration's was made for another one. */
export function seen(colour, paper) {
  const end = luminance(paper) > 0.4 ? 0 : 255;
  let [found, part] = [colour, 0];
  while (contrast(found, paper) < CONTRAST && part < 1) {
    part += 0.05;
    const mixed = channels(colour).map((each) => Math.round(each + (end - each) * part));
    found = `#${mixed.map((each) => each.toString(16).padStart(2, '0')).join('')}`;
  }
  return found;
}

const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

function luminance(colour) {
  const [r, g, b] = channels(colour).map((each) => {
    const part = each / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** In as a part of out, in percent, 100 at most: `dorelpercent`. */
export const relation = (ins, outs) =>
  ins.map((value, n) => (value === null || !outs[n] ? null : Math.min((value / outs[n]) * 100, 100)));
