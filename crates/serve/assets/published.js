// What programs publish, as it is shown: which come first, what is in flight, numbers in words. No elements here.

const SMALL = [
  [1, 's', 1],
  [1e-3, 'ms', 1e3],
  [1e-6, 'µs', 1e6],
  [0, 'ns', 1e9],
];

/** Those that live come first, what has ended last; each by its name. */
export function readPrograms({ publishers }) {
  const rank = ({ life }) => ['alive', 'ended', 'retired'].indexOf(life);
  const all = [...publishers].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name) || a.pid - b.pid);
  const active = all.reduce((sum, each) => sum + each.slots.filter(isActive).length, 0);
  return { all, alive: all.filter(({ life }) => life === 'alive').length, active };
}

const isActive = ({ state }) => state === 'active';
const isOpen = ({ state }) => state.startsWith('idle in') || state === 'prepared';

/** The process of a slot, or its prepared transaction: what others wait for. */
export const keyOf = ({ pid, xid }) => (xid ? transactionWords(xid) : pid);
export const blockersOf = ({ blocked_by: pids = [], blocked_by_xids: xids = [] }) => [
  ...pids,
  ...xids.map(transactionWords),
];
const transactionWords = (xid) => `transaction ${xid}`;

/** Commands that are executed, the oldest first, then open transactions, and whoever else holds others up. */
export function flight(slots) {
  const holders = new Set(slots.flatMap(blockersOf));
  const shown = slots.filter((slot) => isActive(slot) || isOpen(slot) || holders.has(keyOf(slot)));
  return shown.sort((a, b) => Number(isActive(b)) - Number(isActive(a)) || a.since - b.since || a.slot - b.slot);
}

/** How many wait. The recording, of a moment `at`, counts them and has no more of them. */
export function idleOf({ slots, slots_left_out: more }, at) {
  if (at !== undefined) return more ? `${more} others` : '';
  const idle = slots.length - flight(slots).length;
  const words = slots.length ? `${idle} of ${slots.length} idle` : 'nothing said about what it does';
  return more ? `${words}, ${more} more` : words;
}

/** The text of a command; one that is secret, or that is not shown without a token, is said to be there. */
export function secretText({ kind, text, cut, xid }) {
  if (xid) return transactionWords(xid);
  if (kind === 'secret') return '(secret)';
  if (!text) return kind ? '(a token shows it)' : '';
  return cut ? `${text}…` : text;
}

/** What a command waits for, and for whom. */
export const waitWords = (slot) => {
  const blockers = blockersOf(slot);
  return [slot.wait, blockers.length ? `of ${blockers.join(', ')}` : ''].filter(Boolean).join(' ');
};

export const labelWords = (labels) =>
  Object.entries(labels)
    .filter(([, value]) => value)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');

/** Three figures or so with the unit; seconds as ms and µs; nothing for what is not known. */
export function quantity(value, unit, locale) {
  if (value === null || value === undefined) return '';
  const number = (of, maximumFractionDigits) => of.toLocaleString(locale, { maximumFractionDigits });
  if (unit === 'seconds' && Math.abs(value) < 60) {
    const [, word, factor] = value === 0 ? SMALL[0] : SMALL.find(([least]) => Math.abs(value) >= least);
    return `${number(value * factor, Math.abs(value * factor) >= 100 ? 0 : 2)} ${word}`;
  }
  const shown = number(value, Math.abs(value) >= 100 ? 0 : 2);
  return unit ? `${shown} ${unit}` : shown;
}

/** Whose it is: that is for whoever has the token. */
export const ownerOf = ({ user }) => (user ? `of ${user}` : '');

/** Whether a publisher has a text in its name, its owner, its metrics or its commands. */
export function fits({ name, user, metrics, slots }, wanted) {
  const texts = [name, user, ...metrics.map((metric) => metric.name), ...slots.map(({ text }) => text)];
  return texts.some((each) => each.toLowerCase().includes(wanted));
}
