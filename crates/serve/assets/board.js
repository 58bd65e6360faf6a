// A board is cards with one range of time and one cursor. It asks for all its fields in one question, adds live
// samples to the answer, and asks anew when the range changes.
import { slices } from './api.js';
import { createCard } from './card.js';
import { h } from './dom.js';
import { points, question, taken } from './early.js';
import { append, fromSeries, holeBefore, lastKnown, trim } from './frame.js';
import { fieldsOf, wants } from './panels.js';
import { isStored } from './stored.js';

const KEPT_ANSWERS = 12;
const WAIT_MS = 90;
const HOLE_MS = 3000;
// stored series have no live stream
const STORED_MS = 10000;
// points of a line in a chart that is wider than usual, at least
const WIDE_POINTS = 920;
// a server without a recording yet is asked again after so long
const AGAIN_MS = 2000;

/** `add` puts numbers that are computed from others into a frame. */
export function createBoard(ctx, host, { add } = {}) {
  const board = {
    ctx,
    host,
    add,
    cards: [],
    panels: [],
    ids: [],
    frame: null,
    asked: '',
    timer: 0,
    stop: null,
    answers: new Map(),
    grid: h('div', { class: 'grid' }),
    note: h('p', { class: 'note', role: 'status', hidden: true }),
    elsewhere: h('p', { class: 'note elsewhere', role: 'status', hidden: true }),
  };
  host.append(board.note, board.elsewhere, board.grid);
  new ResizeObserver(() => board.cards.forEach((card) => card.resize())).observe(board.grid);
  return {
    cards: () => board.cards,
    frame: () => board.frame,
    fields: () => board.ids,
    setPanels: (panels, decorate) => setPanels(board, panels, decorate),
    refresh: (soon) => refresh(board, soon),
    sample: (sample) => addSample(board, sample),
    mark: (mark) => addMark(board, mark),
    draw: () => draw(board),
    moments: () => moments(board),
    /** Runs whenever something was drawn, or the cursor has moved. */
    onMoments: (run) => {
      board.onMoments = run;
    },
    /** Runs once, after the first drawing, or where there is nothing to draw. */
    drawn: (then) => {
      board.then = then;
    },
  };
}

function setPanels(board, panels, decorate) {
  board.cards.forEach((card) => card.destroy());
  board.panels = panels;
  board.ids = fieldsOf(panels);
  board.cards = panels.map((panel) => createCard(panel, board.ctx, handlers(board)));
  board.grid.replaceChildren(...board.cards.map((card) => card.element));
  board.cards.forEach((card, n) => {
    addPin(board, card);
    decorate?.(card, n);
  });
  board.frame = null;
  refresh(board, true);
}

/** Each chart can be put on a board of its reader. */
function addPin({ ctx }, { panel, tools }) {
  const pin = async () => (await import('./pin.js')).pinPanel(ctx, panel);
  tools.append(h('button', { class: 'topin', title: 'Pin this chart to a board', onclick: pin }, 'pin'));
}

const handlers = ({ ctx }) => ({
  hover: ctx.hoverAt,
  pick: ctx.pick,
  select: ctx.zoomTo,
  pan: ctx.panBy,
  zoom: ctx.zoomBy,
  back: ctx.zoomBack,
});

const unseen = (board) => board.host.closest('.view').hidden;

/** Asks for what is to be seen, at once or when the range has rested. */
function refresh(board, soon) {
  clearTimeout(board.timer);
  draw(board);
  if (soon) ask(board);
  else board.timer = setTimeout(() => ask(board), WAIT_MS);
}

async function ask(board) {
  const { ctx } = board;
  board.stop?.abort();
  clearTimeout(board.timer);
  if (!board.ids.length || unseen(board)) return;
  const view = ctx.view();
  const parameters = question(board.ids, view, ctx.edge, pointsFor(board, view));
  const key = JSON.stringify(parameters);
  const stop = (board.stop = new AbortController());
  try {
    // only what is not live is kept: nothing is added to it
    const answer =
      board.answers.get(key) ?? (await taken(key)) ?? (await answerOf(ctx.api, parameters, view, stop.signal));
    if (stop.signal.aborted) return;
    if (!view.live && view.thru < ctx.edge - 15 && !answer.problem) remember(board.answers, key, answer);
    board.frame = fromSeries(answer, view.live ? undefined : view.thru);
    board.add?.(board.frame);
    for (const panel of board.panels) panel.add?.(board.frame);
    board.problem = answer.problem ?? '';
    board.answered = performance.now();
    if (view.live) for (const sample of ctx.recent) take(board, sample);
    if (board.frame.covered >= board.frame.first) ctx.seen(board.frame.covered);
  } catch (error) {
    if (stop.signal.aborted) return;
    board.problem = error.message;
    if (error.status === 503 && view.live) board.timer = setTimeout(() => ask(board), AGAIN_MS);
  }
  draw(board);
  lookElsewhere(board, view);
}

/** Where a range has no number at all: says when there are some. The page's first view does without this module. */
async function lookElsewhere(board, view) {
  const { ctx, frame } = board;
  const isVoid = frame && !board.problem && lastKnown(frame) < frame.first;
  board.elsewhere.hidden = true;
  if (!isVoid) return;
  const { elsewhere, elsewhereNote } = await import('./elsewhere.js');
  const moment = await elsewhere(ctx, board.ids, view).catch(() => null);
  // another range was chosen meanwhile
  if (moment === null || board.frame !== frame) return;
  board.elsewhere.replaceChildren(...elsewhereNote(ctx, moment, view));
  board.elsewhere.hidden = false;
}

/** One question, or several of the same range where one address is too short for all fields. */
async function answerOf(api, parameters, { from, thru }, signal) {
  const parts = slices(parameters.fields);
  if (parts.length === 1) return api.get('series', parameters, signal);
  const asked = (each) => api.get('series', { ...parameters, from, thru, fields: each }, signal);
  const answers = await Promise.all(parts.map(asked));
  const problem = answers.find((each) => each.problem)?.problem;
  return { ...answers[0], series: answers.flatMap(({ series }) => series), problem };
}

function remember(answers, key, answer) {
  answers.set(key, answer);
  if (answers.size > KEPT_ANSWERS) answers.delete(answers.keys().next().value);
}

/** A point a pixel for charts that are wider than usual. */
const pointsFor = ({ panels, grid }, view) =>
  panels.length > 3 ? points(view) : Math.min(Math.max(WIDE_POINTS, grid.clientWidth), 2000);

function addSample(board, sample) {
  if (!board.frame || !board.ctx.view().live) return;
  if (!take(board, sample)) return;
  if (performance.now() - board.answered > STORED_MS && board.ids.some(isStored)) ask(board);
  if (!board.elsewhere.hidden) board.elsewhere.hidden = lastKnown(board.frame) >= board.frame.first;
  trim(board.frame, board.ctx.view().from);
  draw(board);
}

/** A sample that does not follow the one before: the recording knows whether that is a gap. */
function take(board, sample) {
  const now = performance.now();
  if (holeBefore(board.frame, sample) && now - (board.filled ?? -HOLE_MS) > HOLE_MS) {
    board.filled = now;
    refresh(board, false);
  }
  return append(board.frame, sample, wants(board.ids));
}

function addMark(board, mark) {
  if (board.frame && !board.frame.marks.some((known) => known.time === mark.time && known.kind === mark.kind))
    board.frame.marks.push(mark);
}

/** Draws at the next frame, once, and not at all where nobody looks. */
function draw(board) {
  if (board.drawing || document.hidden || unseen(board)) return;
  board.drawing = true;
  requestAnimationFrame(() => {
    board.drawing = false;
    board.note.textContent = board.problem ?? '';
    board.note.hidden = !board.problem;
    if (board.frame || board.problem) then(board);
    if (!board.frame) return;
    const view = board.ctx.view();
    // all are measured before any is drawn: one layout, not one a chart
    const sizes = board.cards.map((card) => card.size());
    board.cards.forEach((card, n) => card.draw(board.frame, view, sizes[n]));
    moments(board);
  });
}

/** After the browser has shown what was drawn. */
function then(board) {
  const run = board.then;
  board.then = null;
  if (run) requestAnimationFrame(() => setTimeout(run));
}

function moments(board) {
  const { state, hover } = board.ctx;
  for (const card of board.cards) card.moments({ cursor: hover, a: state.at, b: state.b }, board.frame);
  board.onMoments?.();
}
