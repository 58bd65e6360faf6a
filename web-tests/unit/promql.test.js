// Expressions: completion at the caret, answers as frames and tables, the place of an error, what is kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepted, fitting, place, questionFor } from '../../crates/serve/assets/complete.js';
import { forget, keep, kept } from '../../crates/serve/assets/expressions.js';
import { blamed, frameOf, metricText, namesOf, rangeOf, seconds, stepFor, tableOf } from '../../crates/serve/assets/promql-answer.js';

/** The caret is where `|` is. */
const at = (text) => place(text.replace('|', ''), text.indexOf('|'));

test('the caret is in a name, a label, a value, a duration, or in nothing', () => {
  for (const [text, kind, word, more] of [
    ['|', 'name', ''],
    ['no|', 'name', 'no'],
    ['rate(no|', 'name', 'no'],
    ['a + no|', 'name', 'no'],
    ['sum by (mo|', 'label', 'mo', { metric: '' }],
    ['sum by (mo|) (rate(up[5m]))', 'label', 'mo', { metric: 'up' }],
    ['sum(rate(up[5m])) by (mo|)', 'label', 'mo', { metric: 'up' }],
    ['a / on (a, |', 'label', '', { metric: 'a' }],
    ['up{|', 'label', '', { metric: 'up', matchers: [] }],
    ['up{a="b", c|', 'label', 'c', { metric: 'up', matchers: ['a="b"'] }],
    ['{|', 'label', '', { metric: '' }],
    ['up{a="b", c=~"d|', 'value', 'd', { metric: 'up', label: 'c', quote: '"', matchers: ['a="b"'] }],
    ["up{c='|", 'value', '', { label: 'c', quote: "'" }],
    ['up{c="a\\"b|', 'value', 'a\\"b', { label: 'c' }],
    ['up{c="a"} + x{d="|', 'value', '', { metric: 'x', label: 'd', matchers: [] }],
    ['rate(up[|', 'duration', ''],
    ['rate(up[5|', 'duration', '5'],
    ['up offset |', 'duration', ''],
    ['up offset 5|', null],
    ['up{c="d"|', null],
    ['up{c=|', null],
    ['5m|', null],
    ['1e3|', null],
    ['# a comm|', null],
    ['label_replace(up, "a|', null],
    ['"up|', null],
  ]) {
    const found = at(text);
    if (kind === null) assert.equal(found, null, text);
    else {
      assert.deepEqual([found.kind, found.word], [kind, word], text);
      for (const [name, value] of Object.entries(more ?? {})) assert.deepEqual(found[name], value, `${text}: ${name}`);
    }
  }
});

test('every prefix of an expression has a place or none, and never throws', () => {
  const expr = 'sum by (mode) (rate(node_cpu_seconds_total{mode!~"idle|\\"x",cpu=\'0\'}[5m] offset 1h)) / on() group_left scalar(`a`) # the end';
  for (let caret = 0; caret <= expr.length; caret++) place(expr, caret);
  for (const odd of ['}', ')', ']', '}}}{{{', '"', "'", '`', '\\', '{"', '({[', 'é', '\u{1F600}']) place(odd, odd.length);
});

test('the server is asked for what the selector has so far', () => {
  assert.deepEqual(questionFor(at('no|')), ['label/__name__/values', { limit: 20000 }]);
  assert.deepEqual(questionFor(at('up{a="b",c|')), ['labels', { 'match[]': 'up{a="b"}', limit: 1000 }]);
  assert.deepEqual(questionFor(at('up{c="|')), ['label/c/values', { 'match[]': 'up', limit: 5000 }]);
  assert.deepEqual(questionFor(at('sum by (|')), ['labels', { limit: 1000 }]);
  assert.equal(questionFor(at('up[|')), null);
});

test('words that begin with what is typed come first', () => {
  const texts = (text, listed) => fitting(at(text), listed).map((each) => each.text);
  assert.deepEqual(texts('load|', ['node_load1', 'load_x', 'payload']), ['load_x', 'node_load1', 'payload']);
  assert.ok(texts('ra|', []).includes('rate') && !texts('ra|', []).includes('abs'));
  assert.deepEqual(texts('up{j|', ['__name__', 'job', 'instance']), ['job']);
  assert.deepEqual(texts('up{job|', ['job']), [], 'the only word is there');
  assert.ok(texts('up[|', []).includes('5m'));
});

test('a word takes the place of what was typed', () => {
  const take = (text, listed, wanted) => {
    const caret = text.indexOf('|');
    const where = at(text);
    const word = fitting(where, listed).find((each) => each.text === wanted);
    const { expr, caret: after } = accepted(text.replace('|', ''), caret, where, word);
    return `${expr.slice(0, after)}|${expr.slice(after)}`;
  };
  assert.equal(take('ra|', [], 'rate'), 'rate(|');
  assert.equal(take('ra|(up)', [], 'rate'), 'rate(|up)');
  assert.equal(take('sum(no|)', ['node_load1'], 'node_load1'), 'sum(node_load1|)');
  assert.equal(take('up{job="n|', ['node'], 'node'), 'up{job="node"|');
  assert.equal(take('up{job="n|"}', ['node'], 'node'), 'up{job="node"|}');
  assert.equal(take('up{a="|', ['x"y\\z'], 'x"y\\z'), 'up{a="x\\"y\\\\z"|');
});

test('a matrix becomes a frame: gaps stay gaps, what is no number is none', () => {
  const metric = { __name__: 'x_bytes', a: '1' };
  const frame = frameOf([{ metric, values: [[100, '1'], [120, 'NaN'], [130, '+Inf'], [140, '2.5'], [999, '9']] }], { start: 100, end: 140, step: 10 });
  const { avg, unit, help } = frame.fields.get('#0');
  assert.deepEqual(avg, [1, null, null, null, 2.5]);
  assert.deepEqual([unit, help], ['B', 'x_bytes{a="1"}']);
  assert.deepEqual([frame.first, frame.step, frame.count, frame.covered], [100, 10, 5, 140]);
});

test('names tell series apart, what they share is said once', () => {
  const metrics = [{ __name__: 'x', a: '1', b: 'z' }, { __name__: 'x', a: '2', b: 'z' }];
  assert.deepEqual(namesOf(metrics), { shared: 'x{b="z"}', names: ['1', '2'] });
  assert.deepEqual(namesOf([{ a: '1', b: '2' }, { a: '2' }]), { shared: '', names: ['{a="1", b="2"}', '2'] });
  assert.deepEqual(namesOf([{ __name__: 'x' }]), { shared: '', names: ['x'] });
  assert.deepEqual(namesOf([]), { shared: '', names: [] });
  assert.equal(metricText({}), '{}');
  assert.equal(metricText({ a: '<"' }), '{a="<\\""}');
});

test('a table has a column a label', () => {
  const vector = { resultType: 'vector', result: [{ metric: { b: '1', __name__: 'x' }, value: [5, '7'] }, { metric: { a: '2' }, value: [5, 'NaN'] }] };
  assert.deepEqual(tableOf(vector), { columns: ['__name__', 'a', 'b'], rows: [['x', '', '1', '7'], ['', '2', '', 'NaN']] });
  assert.deepEqual(tableOf({ resultType: 'scalar', result: [5, '3'] }).rows, [['3']]);
  assert.deepEqual(tableOf({ resultType: 'matrix', result: [{ metric: { a: '1' }, values: [[5, '3'], [6, '4']] }] }), { columns: ['a'], rows: [['1', '3', 5], ['1', '4', 6]], hasTimes: true });
});

test('the place of an error counts bytes of a line', () => {
  const found = blamed('invalid parameter "query": 2:4: parse error: unexpected x', 'a +\né) b');
  assert.deepEqual([found.line, found.within, found.at, found.message], ['é) b', 2, 6, 'unexpected x']);
  assert.equal(blamed('the time is over', 'a'), null);
  // a text from elsewhere names a place that is not there
  assert.equal(blamed('9:99: parse error: x', 'a').within, 0);
});

test('steps', () => {
  for (const [text, expect] of [['15', 15], ['15s', 15], ['1h30m', 5400], ['500ms', 0.5], ['0', null], ['x', null], ['1h 5m', null], ['', null]]) assert.equal(seconds(text), expect, text);
  for (const [length, expect] of [[60, 1], [900, 2], [3600, 10], [86400, 300], [864000000, 1728000]]) assert.equal(stepFor(length), expect, String(length));
  assert.deepEqual(rangeOf({ from: 101, thru: 139 }, 10), { start: 110, end: 130, step: 10 });
  assert.deepEqual(rangeOf({ from: 101, thru: 109 }, 60), { start: 60, end: 60, step: 60 });
  const { start, end } = rangeOf({ from: 0, thru: 86400 }, 1);
  assert.equal(end - start, 10999, 'the server takes 11,000 points');
});

test('expressions are kept, the newest first and each once', () => {
  const kept_ = new Map();
  const store = { getItem: (name) => kept_.get(name) ?? null, setItem: (name, value) => kept_.set(name, value), removeItem: (name) => kept_.delete(name) };
  for (const expr of ['a', 'b', 'a', '']) keep(expr, store);
  assert.deepEqual(kept(store), ['a', 'b']);
  for (let n = 0; n < 60; n++) keep(`x${n}`, store);
  assert.equal(kept(store).length, 50);
  store.setItem('kymo.expressions', '{"a":1}');
  assert.deepEqual(kept(store), []);
  store.setItem('kymo.expressions', 'no JSON');
  assert.deepEqual(kept(store), []);
  forget(store);
  assert.deepEqual(kept(store), []);
});
