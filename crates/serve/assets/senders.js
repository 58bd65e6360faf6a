// Who sends, as rows of numbers: what is stored of each host beside what the keeper knows of who sends it. No elements
// here.
import { order } from './rows.js';
import { isSilent, orderHosts } from './stored.js';

/** What can become of a value or a datagram other than that it is stored, with words. */
export const LOSSES = {
  bad: 'damaged or forged datagrams',
  foreign: 'datagrams of networks that may not send',
  replayed: 'datagrams sent twice',
  unfit: 'values without time or name',
  late: 'values not newer than the last',
  future: 'values from the future',
  mismatched: 'values of another type than their series',
  refused: 'values of series that may not be made',
  once: 'values of new names that were not repeated',
  held: 'values of series that another sender writes',
  others: 'values of hosts that their user may not send for',
  unwritten: 'values that could not be written',
};

/** Seconds that a clock may be off before it is said, and beyond which values of a clock ahead are not taken. */
const OFF = 1;
const AHEAD = 300;
/** Seconds: what comes less often has no rate of its own over a minute. */
const OFTEN = 20;

/**
 * A row for each stored host, and for each sender that is of none and lost something. `hosts` are those of
 * `readStored`, `answer` is that of /hosts.
 */
export function readSenders(hosts, answer) {
  const senders = sendersOf(answer.sockets);
  const accounts = new Map(answer.hosts.map((account) => [account.host, account]));
  const rows = hosts.map((each) => rowOf(each, accounts.get(each.host), senders, answer.now));
  for (const sender of senders.values())
    if (!sender.hosts && sender.lost) rows.push({ ...unknown(sender), rate: 0, losses: sender });
  return rows;
}

/** By address, all sockets together. */
function sendersOf(sockets) {
  const found = new Map();
  for (const { senders } of sockets)
    for (const each of senders) {
      if (!found.has(each.address)) found.set(each.address, { address: each.address, hosts: 0, lost: 0, offset: null });
      const sender = found.get(each.address);
      for (const name of Object.keys(LOSSES)) {
        sender[name] = (sender[name] ?? 0) + each[name];
        sender.lost += each[name];
      }
      sender.seen = Math.max(sender.seen ?? 0, each.seen);
      sender.offset = each.offset ?? sender.offset;
    }
  return found;
}

function rowOf(each, account, senders, now) {
  const sender = senders.get(account?.address);
  if (sender) sender.hosts += 1;
  const row = { ...each, seen: account?.seen ?? null, gap: account?.gap ?? null, address: account?.address ?? null };
  const offset = offsetOf(account, sender);
  const losses = sender ?? null;
  row.silent = isSilent(row, now);
  return {
    ...row,
    when: row.seen ?? row.last,
    rate: rateOf(row, account?.rate ?? null),
    losses,
    lost: losses ? losses.lost : null,
    offset,
    away: offset === null ? null : Math.abs(offset),
  };
}

const unknown = (sender) => ({
  host: null,
  address: sender.address,
  series: 0,
  last: null,
  step: Infinity,
  seen: sender.seen,
  when: sender.seen,
  gap: null,
  silent: false,
  lost: sender.lost,
  offset: sender.offset,
  away: sender.offset === null ? null : Math.abs(sender.offset),
});

/** As it came; what comes seldom, or by another way, as its definition says. */
function rateOf(row, known) {
  if (known !== null && (known > 0 || row.silent || row.step <= OFTEN)) return known;
  return row.silent ? 0 : row.rate;
}

/** Values of a clock that is too far ahead are not stored: then its packets say it. */
function offsetOf(account, sender) {
  if (sender?.offset < -AHEAD && sender.future > 0) return sender.offset;
  return account?.offset ?? null;
}

/** What is said of a clock: nothing, if it is right. Packets that wait until they are full are late by an interval. */
export function clockOf({ away, offset, step }) {
  if (away === null || away <= OFF) return null;
  return { word: offset > 0 ? 'behind' : 'ahead', wrong: offset < 0 || offset > step + OFF };
}

/** In words, for those that are not zero. */
export const lossWords = (losses) =>
  Object.entries(LOSSES)
    .filter(([name]) => losses?.[name] > 0)
    .map(([name, words]) => `${losses[name]} ${words}`);

/** By a column, or else silent ones first; senders of no host come last then. */
export function orderRows(rows, now, sort) {
  if (sort) return [...rows].sort(order(sort));
  const named = rows.filter(({ host }) => host !== null);
  const others = rows.filter(({ host }) => host === null);
  return [...orderHosts(named, now), ...others];
}
