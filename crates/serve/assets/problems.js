// Problems of a host that sends: its silence, its clock, losses of its sender, and its failures and warnings of a day
// that were not followed by an okay. No elements here.
import { clockOf, lossWords, readSenders } from './senders.js';
import { span } from './time.js';

export const DAY_S = 86400;
const EVENTS_MAX = 5;

/** `{text, time}` each, the worst first; `time`: the moment to look at, if there is one; `hosts`: of readStored. */
export function problemsOf(host, hosts, senders, marks) {
  const row = readSenders(hosts, senders).find((each) => each.host === host);
  const found = [];
  if (row?.silent && row.when !== null)
    found.push({
      text: `silent: the last values came ${span(Math.max(0, senders.now - row.when))} ago`,
      time: row.when,
    });
  found.push(...open(marks.filter((mark) => mark.host === host)));
  const clock = row && clockOf(row);
  if (clock?.wrong) found.push({ text: `its clock is ${span(row.away)} ${clock.word}` });
  if (row?.lost > 0) found.push({ text: `not taken since kymo started: ${lossWords(row.losses).join(', ')}` });
  return found;
}

/** Failures and warnings that stand, newest first: an okay of one thing takes away what was said of it before. */
function open(marks) {
  const standing = new Map();
  for (const { time, kind, text } of [...marks].sort((a, b) => a.time - b.time)) {
    const of = thing(text);
    if (kind === 'okay') standing.delete(of);
    else if (kind === 'failure' || kind === 'warning') standing.set(of, { text: `${kind}: ${text}`, time });
  }
  return [...standing.values()].sort((a, b) => b.time - a.time).slice(0, EVENTS_MAX);
}

/** The name before the message, `HOST/PLUGIN/TYPE: message`. */
const thing = (text) => {
  const end = text.indexOf(': ');
  return end < 0 ? text : text.slice(0, end);
};
