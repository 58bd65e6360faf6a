import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orderReceivers, receiverWords } from '../../crates/serve/assets/receivers.js';

const receiver = (name, more = {}) => ({ name, up: true, backlog_age: 2, backlog_bytes: 0, ...more });

test('receivers that are down come first, then those that are furthest behind', () => {
  const all = [receiver('b'), receiver('a'), receiver('c', { backlog_age: 90 }), receiver('d', { up: false })];
  assert.deepEqual(
    orderReceivers(all).map(({ name }) => name),
    ['d', 'c', 'a', 'b'],
  );
});

test('the line says how many receivers there are, and names the worst', () => {
  assert.equal(receiverWords(undefined), '');
  assert.equal(receiverWords([]), '');
  assert.equal(receiverWords([receiver('a')]), ' · forwards to 1 receiver');
  const late = receiver('c', { backlog_age: 7200 });
  assert.equal(receiverWords([receiver('a'), late]), ' · forwards to 2 receivers, c is 2 h behind');
  assert.equal(receiverWords([{ ...late, up: false }]), ' · forwards to 1 receiver, c is down, 2 h behind');
  assert.equal(receiverWords([receiver('d', { up: false })]), ' · forwards to 1 receiver, d is down');
});
