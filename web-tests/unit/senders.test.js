import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearMarks, sayMarks } from '../../crates/serve/assets/near.js';
import { LOSSES, clockOf, lossWords, orderRows, readSenders } from '../../crates/serve/assets/senders.js';
import { isSilent } from '../../crates/serve/assets/stored.js';

const NOW = 10000;
const none = Object.fromEntries(Object.keys(LOSSES).map((name) => [name, 0]));
const stored = (host, more = {}) => ({ host, series: 70, last: NOW - 5, step: 10, rate: 7, ...more });
const sender = (address, more = {}) => ({ address, seen: NOW - 3, offset: 0.01, datagrams: 5, values: 70, ...none, ...more });
const account = (host, address, more = {}) => ({ host, address, seen: NOW - 3, gap: 10, offset: 0.01, rate: 6.9, values: 70, ...more });
const rows = (hosts, senders, accounts) =>
  readSenders(hosts, { now: NOW, sockets: [{ name: 'a', lost: 0, senders }], hosts: accounts });

test('a host is what is stored of it and what is known of who sends it', () => {
  const [row] = rows([stored('web1')], [sender('192.0.2.1', { late: 2, bad: 1 })], [account('web1', '192.0.2.1')]);
  assert.deepEqual([row.when, row.rate, row.lost, row.address, row.silent], [NOW - 3, 6.9, 3, '192.0.2.1', false]);
  assert.deepEqual(lossWords(row.losses), ['1 damaged or forged datagrams', '2 values not newer than the last']);
  // by another protocol, or not since the keeper's start
  const [other] = rows([stored('web1')], [], []);
  assert.deepEqual([other.when, other.rate, other.lost, other.offset, other.silent], [NOW - 5, 7, null, null, false]);
});

test('one sender by two sockets is one', () => {
  const sockets = [{ name: 'a', lost: 0, senders: [sender('::1', { late: 1 })] }, { name: 'b', lost: 0, senders: [sender('::1', { late: 2, offset: null })] }];
  const [row] = readSenders([stored('h')], { now: NOW, sockets, hosts: [account('h', '::1')] });
  assert.equal(row.lost, 3);
});

test('who sends what nobody takes is a row of its own, and comes last', () => {
  const found = rows([stored('web1')], [sender('192.0.2.9', { bad: 7 }), sender(null, { held: 1 }), sender('192.0.2.8')], []);
  assert.deepEqual(orderRows(found, NOW, '').map(({ host, address, lost }) => [host, address, lost]), [['web1', null, null], [null, '192.0.2.9', 7], [null, null, 1]]);
});

test('silent is no datagram for three times the usual gap and two intervals', () => {
  for (const [ago, gap, step, silent] of [[29, 10, 10, false], [31, 10, 10, true], [31, 10, 60, false], [121, 10, 60, true], [31, null, 10, true], [100, 50, 10, false]])
    assert.equal(isSilent({ last: NOW - 9999, step, seen: NOW - ago, gap }, NOW), silent, `${ago} ${gap} ${step}`);
  // a host whose clock is an hour behind is not silent
  const [row] = rows([stored('slow', { last: NOW - 3605 })], [], [account('slow', '::1', { offset: 3600 })]);
  assert.equal(row.silent, false);
});

test('a rate is as it came; what comes seldom has that of its definition', () => {
  const rate = (more, known) => rows([stored('h', more)], [], [account('h', '::1', { rate: known })])[0].rate;
  assert.equal(rate({}, 0), 0);
  assert.equal(rate({}, null), 7);
  assert.equal(rate({ step: 300, rate: 0.2 }, 0), 0.2);
  assert.equal(rate({ step: 300, rate: 0.2 }, 1.2), 1.2);
});

test('clocks are said when they are off, and wrong when waiting does not explain it', () => {
  const clock = (offset, step = 10) => clockOf({ offset, step, away: offset === null ? null : Math.abs(offset) });
  assert.equal(clock(null), null);
  assert.equal(clock(0.9), null);
  assert.deepEqual(clock(10.5), { word: 'behind', wrong: false });
  assert.deepEqual(clock(11.5), { word: 'behind', wrong: true });
  assert.deepEqual(clock(-1.5), { word: 'ahead', wrong: true });
  // values from the future are not stored: then the sender's packets say it
  const [row] = rows([stored('h')], [sender('::1', { offset: -7200, future: 9 })], [account('h', '::1')]);
  assert.equal(row.offset, -7200);
});

test('rows are ordered by what is asked for', () => {
  const hosts = ['a', 'b', 'c'].map((host) => stored(host, { last: host === 'c' ? 1 : NOW }));
  const found = rows(hosts, [], [account('b', '::1', { offset: -9, rate: 99 })]);
  const order = (sort) => orderRows(found, NOW, sort).map(({ host }) => host).join('');
  assert.deepEqual([order(''), order('-away'), order('-rate'), order('host'), order('-host'), order('when')], ['cab', 'bac', 'bac', 'abc', 'cba', 'cba']);
});

test('what happened near a moment, in words', () => {
  const marks = [{ time: 50, until: 50, kind: 'failure', text: 'web1: <b>' }, { time: 60, until: 70, kind: 'gap', text: 'gap' }];
  const near = (time) => sayMarks(nearMarks(marks, { from: 0, thru: 100 }, time));
  assert.deepEqual([near(null), near(undefined), near(50.5), near(65), near(55)], ['', '', 'failure: web1: <b>', 'gap', '']);
});
