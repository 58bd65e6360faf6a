// Colours: Okabe and Ito's, which people with any of the usual colour blindnesses can tell apart; a little lighter on
// dark and darker on light, and dashed from the ninth on, so that colour is never all there is.

const DARK = ['#56b4e9', '#2bc79a', '#f2814a', '#d68fb8', '#f0e442', '#b9c0cc', '#7f8fff', '#e69f00'];
const LIGHT = ['#2a8fd0', '#00916a', '#d55e00', '#b3578f', '#a39a00', '#6b7280', '#3344bb', '#d08f00'];
const DASHES = [undefined, [6, 3], [2, 2], [8, 2, 2, 2]];

const scheme = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set();

export const isDark = () => (document.documentElement.dataset.theme ?? (scheme.matches ? 'dark' : 'light')) === 'dark';

/** `auto` follows the system. */
export function setTheme(choice) {
  if (choice === 'dark' || choice === 'light') document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  for (const each of listeners) each();
}

export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
scheme.addEventListener('change', () => listeners.forEach((each) => each()));

/** Colour and dash of the n-th line, counted from one; a colour of its own is what it is. */
export function pen(n) {
  if (typeof n === 'string') return { colour: n };
  const colours = isDark() ? DARK : LIGHT;
  return {
    colour: colours[(n - 1) % colours.length],
    dash: DASHES[Math.floor((n - 1) / colours.length) % DASHES.length],
  };
}

/** What a chart needs besides its lines. */
export function inks() {
  return isDark()
    ? {
        text: '#8b94a3',
        grid: 'rgba(255,255,255,0.06)',
        gap: 'rgba(255,255,255,0.07)',
        mark: 'rgba(240,228,66,0.75)',
        marks: { failure: '#f2814a', okay: '#2bc79a' },
        paper: '#14181f',
        ink: '#e6e9ee',
      }
    : {
        text: '#667085',
        grid: 'rgba(0,0,0,0.07)',
        gap: 'rgba(0,0,0,0.07)',
        mark: 'rgba(180,90,0,0.75)',
        marks: { failure: '#d5280a', okay: '#00916a' },
        paper: '#ffffff',
        ink: '#1a1f29',
      };
}

export const fade = (hex, alpha) =>
  hex +
  Math.round(alpha * 255)
    .toString(16)
    .padStart(2, '0');
