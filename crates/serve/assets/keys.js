// The keyboard: everything the mouse can do. One table is the help and the bindings alike.
import { dialog, h } from './dom.js';

export const KEYS = [
  [
    '←  →',
    'move the cursor by a sample; with Shift by ten',
    {
      ArrowLeft: (act, event) => act.step(event.shiftKey ? -10 : -1),
      ArrowRight: (act, event) => act.step(event.shiftKey ? 10 : 1),
    },
  ],
  [
    'Home  End',
    'cursor to the first or last sample in sight',
    { Home: (act) => act.toEnd('from'), End: (act) => act.toEnd('thru') },
  ],
  [
    '+  −',
    'look closer, look wider',
    { '+': (act) => act.zoom(0.5), '=': (act) => act.zoom(0.5), '-': (act) => act.zoom(2) },
  ],
  ['[  ]', 'go back and forward in time', { '[': (act) => act.pan(-0.5), ']': (act) => act.pan(0.5) }],
  [
    '1 … 8',
    'range: 1m 5m 15m 1h 6h 24h 7d all',
    Object.fromEntries([...'12345678'].map((digit) => [digit, (act) => act.range(Number(digit) - 1)])),
  ],
  ['L', 'live', { l: (act) => act.live() }],
  ['P', 'hold the moment at the cursor (pin A)', { p: (act) => act.pin() }],
  ['C', 'compare: pin B at the cursor', { c: (act) => act.compare() }],
  ['Esc', 'let go of what is held', { Escape: (act) => act.release() }],
  ['/', 'search or filter', { '/': (act) => act.filter() }],
  [
    'N  F  S  X  B  H  A  Q  M  E  R',
    'now, all fields, series, expressions (X), boards, hosts, programs (A), PostgreSQL (Q), ' +
      'targets (MRTG), events, raw texts',
    {
      n: (act) => act.view('now'),
      f: (act) => act.view('fields'),
      s: (act) => act.view('series'),
      x: (act) => act.view('query'),
      b: (act) => act.view('boards'),
      h: (act) => act.view('hosts'),
      a: (act) => act.view('programs'),
      q: (act) => act.view('postgres'),
      m: (act) => act.view('targets'),
      e: (act) => act.view('events'),
      r: (act) => act.view('raw'),
    },
  ],
  ['T', 'dark or light', { t: (act) => act.theme() }],
  ['?', 'this help', { '?': (act) => act.help() }],
];

const ACTIONS = Object.assign({}, ...KEYS.map(([, , bound]) => bound));

/** What a key does, or undefined: keys with modifiers and keys typed into fields are not ours. */
export function actionFor(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return undefined;
  const { tagName } = event.target;
  if (['INPUT', 'SELECT', 'TEXTAREA'].includes(tagName))
    return event.key === 'Escape' ? (act, each) => each.target.blur() : undefined;
  return ACTIONS[event.key] ?? ACTIONS[event.key.toLowerCase()];
}

export function bindKeys(act) {
  document.addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open]')) return;
    const action = actionFor(event);
    if (!action) return;
    event.preventDefault();
    action(act, event);
  });
}

export function helpDialog() {
  const pointer = [
    ['move', 'the cursor: all charts and the process table follow'],
    ['click', 'hold the moment (A); Shift+click pins B and compares'],
    ['drag', 'zoom; with Shift move through time'],
    ['double click', 'back to the range before'],
    ['Ctrl+wheel', 'zoom; sideways wheel or Shift+wheel moves through time'],
  ];
  const rows = (list, cell) =>
    h(
      'dl',
      {},
      list.map(([name, said]) => [h('dt', {}, cell(name)), h('dd', {}, said)]),
    );
  dialog(
    'Keys and mouse',
    h(
      'div',
      { class: 'help' },
      rows(KEYS, (name) => name.split('  ').map((key) => h('kbd', {}, key))),
      rows(pointer, (name) => h('kbd', {}, name)),
    ),
  );
}
