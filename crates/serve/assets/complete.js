// Completion of PromQL: which kind of word the caret is in, and which words fit it. Asks the server for nothing.
import { AGGREGATIONS, DURATIONS, FUNCTIONS, GROUPINGS, KEYWORDS } from './promql-words.js';

const TOKEN = new RegExp(
  [
    /\s+|#[^\n]*/,
    /(?<text>"(?:[^"\\]|\\.)*|'(?:[^'\\]|\\.)*|`[^`]*)(?<end>["'`]?)/,
    /[a-zA-Z_:][\w:]*|[\d.][\w.]*|[=!]~|[=!<>]=|[^]/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gy',
);
const WORD = /[a-zA-Z_:][\w:]*$/;
const OPERATORS = new Set(['=', '!=', '=~', '!~']);
const SHOWN = 60;

/**
 * The word before the caret: `{kind, word, from, metric, label, matchers}`. Kinds: `name` (of a metric, a function or a
 * keyword), `label`, `value` (of `label`, within quotes: `quote`), `duration`. Null: nothing can be completed there.
 */
export function place(expr, caret) {
  const before = expr.slice(0, caret);
  const open = [];
  const state = { last: '', name: '' };
  for (const { 0: token, groups, index } of before.matchAll(TOKEN)) {
    const isText = groups.text !== undefined;
    if (isText && !groups.end) return inText(open.at(-1), token, index);
    if (token.startsWith('#') && index + token.length === caret) return null;
    if (!isText && !/\S/.test(token)) continue;
    if (token.startsWith('#')) continue;
    step(open, state, token, isText);
  }
  state.name ||= [...expr.slice(caret).matchAll(/[a-zA-Z_:][\w:]*/g)].map(([word]) => word).find(isName) ?? '';
  return outside(open.at(-1), state, before);
}

/** Follows one token: brackets that it opens or closes, matchers that it is part of. */
function step(open, state, token, isText) {
  const inner = open.at(-1);
  if (token === '{') open.push({ sign: '{', metric: state.isName ? state.last : '', matchers: [], label: '', op: '' });
  else if (token === '(') open.push({ sign: '(', isLabels: GROUPINGS.has(state.last), metric: '' });
  else if (token === '[') open.push({ sign: '[' });
  else if (['}', ')', ']'].includes(token)) open.pop();
  else if (inner?.sign === '{') match(inner, token, isText);
  else if (isName(token) && inner?.sign !== '[' && !inner?.isLabels) state.name = token;
  state.before = state.last;
  state.last = token;
  state.isName = !isText && WORD.test(token);
}

/** Whether a token is the name of a metric. */
const isName = (token) =>
  WORD.test(token) && ![FUNCTIONS, AGGREGATIONS, KEYWORDS].some((table) => Object.hasOwn(table, token));

function match(selector, token, isText) {
  if (isText && selector.op) selector.matchers.push(`${selector.label}${selector.op}${token}`);
  else if (OPERATORS.has(token)) selector.op = token;
  else if (token === ',') Object.assign(selector, { label: '', op: '' });
  else if (WORD.test(token)) selector.label = token;
}

function inText(selector, token, index) {
  if (selector?.sign !== '{' || !selector.op) return null;
  const { metric, label, matchers } = selector;
  return { kind: 'value', word: token.slice(1), from: index + 1, quote: token[0], metric, label, matchers };
}

function outside(inner, state, before) {
  const word = WORD.exec(before)?.[0] ?? '';
  const from = before.length - word.length;
  // `5m`, `1e3`: no name begins within a number
  if (/[\d.]$/.test(before.slice(0, from)) || (!word && /[\w.]$/.test(before))) {
    const number = /[\d][\w]*$/.exec(before)?.[0];
    if (inner?.sign !== '[' || !number) return null;
    return { kind: 'duration', word: number, from: before.length - number.length };
  }
  if (inner?.sign === '[' || (word ? state.before : state.last) === 'offset') return { kind: 'duration', word, from };
  if (inner?.sign === '{') {
    if (inner.op) return null;
    return { kind: 'label', word, from, metric: inner.metric, matchers: inner.matchers };
  }
  if (inner?.isLabels) return { kind: 'label', word, from, metric: state.name, matchers: [] };
  return { kind: 'name', word, from };
}

/** What the server is asked for, as `[path, parameters]`; null where nothing is. */
export function questionFor({ kind, metric, label, matchers }) {
  if (kind === 'name') return ['label/__name__/values', { limit: 20000 }];
  if (kind !== 'label' && kind !== 'value') return null;
  const found = `${metric || ''}${matchers.length ? `{${matchers.join(',')}}` : ''}`;
  const of = found ? { 'match[]': found } : {};
  return kind === 'label'
    ? ['labels', { ...of, limit: 1000 }]
    : [`label/${encodeURIComponent(label)}/values`, { ...of, limit: 5000 }];
}

const words = (table, kind, ending) =>
  Object.entries(table).map(([name, help]) => ({ text: name, kind, help, insert: `${name}${ending}` }));

/** All that fits a kind of place. `listed`: what the server has there. */
function candidates({ kind, quote }, listed) {
  if (kind === 'duration') return DURATIONS.map((text) => ({ text, kind: '', help: '', insert: text }));
  if (kind === 'value') return listed.map((text) => ({ text, kind: '', help: '', insert: quoted(text, quote) }));
  if (kind === 'label') {
    const names = listed.filter((name) => name !== '__name__');
    return names.map((text) => ({ text, kind: 'label', help: '', insert: text }));
  }
  return [
    ...listed.map((text) => ({ text, kind: 'metric', help: '', insert: text })),
    ...words(AGGREGATIONS, 'aggregation', '('),
    ...words(FUNCTIONS, 'function', '('),
    ...words(KEYWORDS, 'keyword', ' '),
  ];
}

/** A value between quotes: a backslash and the quote are escaped, but for those of raw texts. */
const quoted = (text, quote) =>
  quote === '`'
    ? text
    : text.replace(/[\\\n]/g, (sign) => (sign === '\n' ? '\\n' : '\\\\')).replaceAll(quote, `\\${quote}`);

/** Words that fit, the best first: those that begin with what is typed, then those that have it within. */
export function fitting(where, listed) {
  const wanted = where.word.toLowerCase();
  const ranked = [];
  for (const each of candidates(where, listed)) {
    const at = each.text.toLowerCase().indexOf(wanted);
    if (at >= 0) ranked.push([at === 0 ? 0 : /[_:.]/.test(each.text[at - 1]) ? 1 : 2, ranked.length, each]);
  }
  ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const found = ranked.slice(0, SHOWN).map(([, , each]) => each);
  // the only word that fits is there already
  return found.length === 1 && found[0].text === where.word ? [] : found;
}

/** The expression with the word in the place of what is typed, and where the caret is then. */
export function accepted(expr, caret, where, { insert }) {
  const rest = expr.slice(caret);
  const whole = where.kind === 'value' ? insert + where.quote : insert;
  const isThere = /[( "'`]$/.test(whole) && rest.startsWith(whole.at(-1));
  const text = isThere ? whole.slice(0, -1) : whole;
  return { expr: expr.slice(0, where.from) + text + rest, caret: where.from + whole.length };
}
