// What is seen, as the page's address: every view can be sent to somebody else.

const VIEWS = [
  'now',
  'fields',
  'events',
  'raw',
  'series',
  'query',
  'boards',
  'hosts',
  'programs',
  'postgres',
  'targets',
];
const number = { read: (text) => (/^-?\d{1,12}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined), write: String };
const word = { read: (text) => text, write: String };
const list = {
  read: (text) => text.split('~').filter(Boolean).map(unescape),
  write: (value) => value.map(escape).join('~'),
};
const boards = {
  // a board of charts: `~` between the fields of a chart, `|` between charts; both are escaped in names
  read: (text) =>
    text
      .split('|')
      .map((chart) => chart.split('~').filter(Boolean).map(unescape))
      .filter((chart) => chart.length),
  write: (value) => value.map((chart) => chart.map(escape).join('~')).join('|'),
};
const PARTS = {
  view: { read: (text) => (VIEWS.includes(text) ? text : undefined), write: String },
  range: { read: (text) => (text === 'all' ? 'all' : positive(text)), write: String },
  from: number,
  thru: number,
  at: number,
  b: number,
  sort: word,
  filter: word,
  group: word,
  split: list,
  hide: list,
  groups: list,
  listed: word,
  fields: boards,
  q: word,
  source: word,
  expr: word,
  step: word,
  form: word,
  board: { read: (text) => (/^[a-z0-9-]{1,64}$/.test(text) ? text : undefined), write: String },
  host: word,
  target: word,
  by: word,
  flat: word,
};

function escape(id) {
  return id.replace(/[!~|]/g, (sign) => `!${'!~|'.indexOf(sign)}`);
}

function unescape(text) {
  return text.replace(/!([012])/g, (_, sign) => '!~|'[sign]);
}

function positive(text) {
  const value = number.read(text);
  return value > 0 ? value : undefined;
}

/** Reads a query; what makes no sense is left out. */
export function parse(search) {
  const state = {};
  for (const [name, text] of new URLSearchParams(search)) {
    const value = Object.hasOwn(PARTS, name) ? PARTS[name].read(text) : undefined;
    if (value !== undefined && value !== '') state[name] = value;
  }
  if (state.from === undefined || state.thru === undefined || state.from >= state.thru) {
    delete state.from;
    delete state.thru;
  } else delete state.range;
  return state;
}

/** The query for a state; what is empty is left out. */
export function write(state) {
  const query = new URLSearchParams();
  for (const [name, part] of Object.entries(PARTS)) {
    const value = state[name];
    const empty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
    if (!empty && !(name === 'view' && value === 'now')) query.set(name, part.write(value));
  }
  const text = query.toString();
  return text ? `?${text}` : '';
}
