// The box for an expression: Enter asks, Tab takes a word of the list, Ctrl and space open it.
import { accepted, fitting, place, questionFor } from './complete.js';
import { h } from './dom.js';

/** Lists of the server are asked for again after so long. */
const FRESH_MS = 60000;
const WAIT_MS = 120;
const LISTS_MAX = 50;

/** `on.run(expr)` is called for a finished expression. */
export function createBox(ctx, on) {
  const input = h('textarea', {
    rows: '1',
    'aria-label': 'Expression',
    'aria-autocomplete': 'list',
    'aria-controls': 'query-words',
    'aria-expanded': 'false',
    role: 'combobox',
    placeholder: 'an expression of PromQL: rate(node_cpu_seconds_total[1m])',
    spellcheck: 'false',
    autocapitalize: 'off',
    autocomplete: 'off',
  });
  const list = h('ul', { id: 'query-words', class: 'words', role: 'listbox', 'aria-label': 'Words', hidden: true });
  const box = { ctx, on, input, list, lists: new Map(), where: null, found: [], marked: -1, timer: 0, stop: null };
  input.addEventListener('input', () => (grow(input), soon(box)));
  input.addEventListener('keydown', (event) => keyDown(box, event));
  input.addEventListener('blur', () => close(box));
  return {
    element: h('div', { class: 'expression' }, input, list),
    value: () => input.value.trim(),
    set: (expr) => {
      if (input.value !== expr) input.value = expr;
      close(box);
      grow(input);
    },
    focus: () => input.focus(),
    /** Names of metrics that there are. */
    names: () => listOf(box, questionFor({ kind: 'name' })),
    rest: () => close(box),
  };
}

/** As high as its lines. */
function grow(input) {
  input.style.height = 'auto';
  if (input.scrollHeight) input.style.height = `${input.scrollHeight + 2}px`;
}

function soon(box) {
  clearTimeout(box.timer);
  box.timer = setTimeout(() => suggest(box, false), WAIT_MS);
}

/** Shows what fits; `always`: also where nothing is typed yet. */
async function suggest(box, always) {
  const { input } = box;
  const where = input.selectionStart === input.selectionEnd ? place(input.value, input.selectionStart) : null;
  if (!where || (!where.word && where.kind === 'name' && !always)) return close(box);
  const asked = [input.value, input.selectionStart].join();
  const question = questionFor(where);
  const listed = question ? await listOf(box, question) : [];
  // typed on meanwhile, or left
  if (document.activeElement !== input || asked !== [input.value, input.selectionStart].join()) return;
  box.where = where;
  show(box, fitting(where, listed));
}

/** A list of the server; empty where there is none. A newer question ends an older one. */
async function listOf(box, question) {
  const [path, parameters] = question;
  const key = JSON.stringify(question);
  const known = box.lists.get(key);
  if (known && performance.now() - known.at < FRESH_MS) return known.list;
  box.stop?.abort();
  const stop = (box.stop = new AbortController());
  try {
    const { data } = await box.ctx.api.prometheus(path, parameters, stop.signal);
    box.lists.delete(key);
    box.lists.set(key, { at: performance.now(), list: data });
    if (box.lists.size > LISTS_MAX) box.lists.delete(box.lists.keys().next().value);
    return data;
  } catch {
    // completion only helps: the question itself will say what is wrong
    return known?.list ?? [];
  }
}

function show(box, found) {
  const { input, list } = box;
  box.found = found;
  list.hidden = !found.length;
  input.setAttribute('aria-expanded', String(found.length > 0));
  list.replaceChildren(
    ...found.map((each, n) =>
      h(
        'li',
        {
          id: `query-word-${n}`,
          role: 'option',
          // before the box loses the focus
          onmousedown: (event) => {
            event.preventDefault();
            take(box, each);
          },
        },
        h('span', { class: 'name' }, each.text),
        h('small', {}, each.help || each.kind),
      ),
    ),
  );
  mark(box, -1);
}

function mark(box, n) {
  box.marked = n;
  [...box.list.children].forEach((item, at) => item.setAttribute('aria-selected', String(at === n)));
  if (n >= 0) {
    box.input.setAttribute('aria-activedescendant', `query-word-${n}`);
    box.list.children[n].scrollIntoView({ block: 'nearest' });
  } else box.input.removeAttribute('aria-activedescendant');
}

function close(box) {
  clearTimeout(box.timer);
  box.stop?.abort();
  if (!box.list.hidden) show(box, []);
}

function take(box, each) {
  const { input, where } = box;
  const { expr, caret } = accepted(input.value, input.selectionStart, where, each);
  input.value = expr;
  input.setSelectionRange(caret, caret);
  grow(input);
  close(box);
  if (each.insert.endsWith('(')) soon(box);
}

function keyDown(box, event) {
  const { found, marked } = box;
  const isOpen = !box.list.hidden;
  const done = (run) => {
    event.preventDefault();
    run();
  };
  if (event.key === ' ' && event.ctrlKey) done(() => suggest(box, true));
  else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing)
    done(() => (isOpen && marked >= 0 ? take(box, found[marked]) : run(box)));
  else if (!isOpen) return;
  else if (event.key === 'Tab' && !event.shiftKey) done(() => take(box, found[Math.max(marked, 0)]));
  else if (event.key === 'Escape') done(() => close(box));
  else if (event.key === 'ArrowDown') done(() => mark(box, (marked + 1) % found.length));
  else if (event.key === 'ArrowUp') done(() => mark(box, (marked <= 0 ? found.length : marked) - 1));
}

function run(box) {
  close(box);
  box.on.run(box.input.value.trim());
}
