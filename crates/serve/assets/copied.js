// Lines to copy: a box with them, and a button that puts them on the clipboard.
import { h, text } from './dom.js';

const SHOWN_MS = 1500;

export function copied(lines) {
  const box = h('pre', { tabindex: '0' }, lines);
  const button = h('button', { title: 'Copies these lines', onclick: () => copy(box, button) }, 'copy');
  return h('div', { class: 'copied' }, box, button);
}

/** A page without TLS has no clipboard: then the lines are selected, for the keyboard. */
async function copy(box, button) {
  try {
    await navigator.clipboard.writeText(box.textContent);
    text(button, 'copied');
  } catch {
    getSelection().selectAllChildren(box);
    text(button, 'selected');
  }
  setTimeout(() => text(button, 'copy'), SHOWN_MS);
}
