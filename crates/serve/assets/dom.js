// Elements without HTML: text only ever becomes a text node, so a name from outside can't be markup.

/** Makes an element: h('button', {class: 'x', onclick: f, 'aria-label': 'y'}, 'text', child). */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) put(element, name, value);
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

function put(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
  else if (name === 'class') element.className = value;
  else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'hidden' || name === 'selected')
    element[name] = value;
  else element.setAttribute(name, value === true ? '' : value);
}

/** Sets text only where it differs: an unchanged cell costs no layout. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** A dialog that closes on Escape, on its button and on a click beside it. */
export function dialog(title, ...content) {
  const close = h('button', { class: 'icon', 'aria-label': 'Close', onclick: () => box.close() }, '×');
  const box = h('dialog', { 'aria-label': title }, h('header', {}, h('h2', {}, title), close), ...content);
  box.addEventListener('click', (event) => event.target === box && box.close());
  box.addEventListener('close', () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Gives a blob to the reader as a file. */
export function save(blob, name) {
  const link = h('a', { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
