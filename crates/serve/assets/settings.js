// What the reader likes, kept in this browser.
import { dialog, h } from './dom.js';

const KEPT = 'kymo.settings';
const DEFAULTS = { bytes: 'binary', bits: false, zone: 'browser', theme: 'auto', table: 'dock' };
const CHOICES = [
  [
    'theme',
    'Colours',
    [
      ['auto', 'as the system'],
      ['dark', 'dark'],
      ['light', 'light'],
    ],
  ],
  [
    'bytes',
    'Bytes',
    [
      ['binary', 'KiB, MiB (1024)'],
      ['decimal', 'kB, MB (1000)'],
    ],
  ],
  [
    'bits',
    'Network',
    [
      [false, 'bytes'],
      [true, 'bits'],
    ],
  ],
  [
    'zone',
    'Times',
    [
      ['browser', 'my time zone'],
      ['machine', 'the machine’s time zone'],
      ['utc', 'UTC'],
    ],
  ],
  [
    'table',
    'Processes',
    [
      ['dock', 'always in sight'],
      ['below', 'below all charts'],
    ],
  ],
];

export function loadSettings(store = localStorage) {
  let kept = {};
  try {
    kept = JSON.parse(store.getItem(KEPT)) ?? {};
  } catch {
    // somebody else's writing: the defaults will do
  }
  const good = Object.fromEntries(
    CHOICES.filter(([name, , choices]) => choices.some(([value]) => value === kept[name])).map(([name]) => [
      name,
      kept[name],
    ]),
  );
  return { ...DEFAULTS, ...good, locale: undefined };
}

export function keepSettings(settings, store = localStorage) {
  store.setItem(KEPT, JSON.stringify(Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, settings[name]]))));
}

export function settingsDialog(settings, change) {
  dialog(
    'Settings',
    h(
      'div',
      { class: 'choices' },
      CHOICES.map(([name, label, choices]) =>
        h(
          'label',
          {},
          h('span', {}, label),
          h(
            'select',
            { onchange: (event) => change({ [name]: choices[event.target.selectedIndex][0] }) },
            choices.map(([value, said]) => h('option', { selected: settings[name] === value }, said)),
          ),
        ),
      ),
    ),
  );
}
