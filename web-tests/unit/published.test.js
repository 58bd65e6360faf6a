import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fits, flight, idleOf, labelWords, quantity, readPrograms, secretText } from '../../crates/serve/assets/published.js';

const slot = (number, state, since, more = {}) => ({ slot: number, state, since, kind: 'sql', text: 'SELECT ?', cut: false, labels: {}, ...more });
const program = (name, life, slots = []) => ({ name, user: 'ada', pid: 1, life, metrics: [{ name: 'rows_total' }], slots, slots_left_out: 0 });

test('who lives comes first, and what is in flight is counted', () => {
  const publishers = [program('a', 'retired'), program('z', 'alive', [slot(0, 'active', 5)]), program('b', 'alive', [slot(0, 'idle', 5)])];
  const { all, alive, active } = readPrograms({ publishers });
  assert.deepEqual(all.map(({ name }) => name), ['b', 'z', 'a']);
  assert.deepEqual([alive, active], [2, 1]);
});

test('the oldest command comes first, then open transactions; what waits is counted', () => {
  const slots = [slot(0, 'idle', 1), slot(1, 'idle in transaction', 1), slot(2, 'active', 9), slot(3, 'active', 4)];
  assert.deepEqual(flight(slots).map((each) => each.slot), [3, 2, 1]);
  assert.equal(idleOf({ slots, slots_left_out: 0 }), '1 of 4 idle');
  assert.equal(idleOf({ slots, slots_left_out: 7 }), '1 of 4 idle, 7 more');
  assert.equal(idleOf({ slots: [], slots_left_out: 0 }), 'nothing said about what it does');
  assert.deepEqual([7, 0].map((others) => idleOf({ slots, slots_left_out: others }, 1795300000)), ['7 others', '']);
});

test('texts that are not shown are said to be there', () => {
  assert.equal(secretText(slot(0, 'active', 1)), 'SELECT ?');
  assert.equal(secretText(slot(0, 'active', 1, { cut: true })), 'SELECT ?…');
  assert.equal(secretText(slot(0, 'active', 1, { kind: 'secret', text: '' })), '(secret)');
  assert.equal(secretText(slot(0, 'active', 1, { text: '' })), '(a token shows it)');
  assert.equal(secretText(slot(0, 'idle', 1, { kind: '', text: '' })), '');
});

test('numbers have their units', () => {
  assert.equal(quantity(null, 'seconds', 'en'), '');
  assert.equal(quantity(0.0012, 'seconds', 'en'), '1.2 ms');
  assert.equal(quantity(0.000002, 'seconds', 'en'), '2 µs');
  assert.equal(quantity(0, 'seconds', 'en'), '0 s');
  assert.equal(quantity(1234.5, '', 'en'), '1,235');
  assert.equal(quantity(7, 'bytes', 'en'), '7 bytes');
  assert.equal(labelWords({ kind: 'read', none: '' }), 'kind=read');
});

test('a filter looks into names, owners, metrics and texts', () => {
  const each = program('example', 'alive', [slot(0, 'active', 1)]);
  for (const wanted of ['', 'exa', 'ada', 'rows', 'select']) assert.ok(fits(each, wanted), wanted);
  assert.ok(!fits(each, 'nothing'));
});
