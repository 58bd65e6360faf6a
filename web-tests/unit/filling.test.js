// Lines to copy of an empty tab: with an address that others reach, and only what is not there yet.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, collectdSteps, programSteps, statsdSteps, targetSteps } from '../../crates/serve/assets/filling.js';
import { newestOf } from '../../crates/serve/assets/elsewhere.js';

test('the address is that under which others reach this machine', () => {
  const status = { address: '192.0.2.7' };
  for (const [hostname, given, expect] of [
    ['127.0.0.1', status, '192.0.2.7'],
    ['localhost', status, '192.0.2.7'],
    ['[::1]', status, '192.0.2.7'],
    ['localhost', { address: null }, 'localhost'],
    ['localhost', null, 'localhost'],
    ['hub.example', status, 'hub.example'],
    ['127.example', status, '127.example'],
  ])
    assert.equal(addressOf(hostname, given), expect, hostname);
});

const text = (steps) => steps.flatMap(({ lines }) => lines).join('\n');

test('collectd: loopback is open, others need kymo to listen', () => {
  const closed = text(collectdSteps('hub.example', '192.0.2.7', ['127.0.0.1:25826']));
  assert.match(closed, /Server "127\.0\.0\.1" "25826"\n/);
  assert.match(closed, /collectd = \["192\.0\.2\.7:25826"\]/);
  assert.match(closed, /<Server "hub\.example" "25826">/);
  assert.match(closed, /\nallow = \["192\.0\.2\.0\/24"\]/);
  assert.match(closed, /IPAddressAllow=192\.0\.2\.0\/24/);
  assert.match(text(collectdSteps('hub', '2001:db8::1', [])), /collectd = \["\[2001:db8::1\]:25826"\]\n[^]*allow = \["2001:db8::1"\]/);
  const open = text(collectdSteps('hub.example', '192.0.2.7', ['127.0.0.1:25826', '0.0.0.0:9000']));
  assert.doesNotMatch(open, /listen/);
  assert.match(open, /<Server "hub\.example" "9000">/);
  assert.match(text(collectdSteps('hub.example', '192.0.2.7', [])), /listen/);
  assert.match(text(collectdSteps('hub.example', '192.0.2.7', ['[::1]:25826'])), /Server "\[::1\]" "25826"/);
});

test('no line names a file of the source tree', () => {
  const all = text([...statsdSteps(false), ...statsdSteps(true), ...programSteps('http://a/'), ...targetSteps('192.0.2.7', "/a'b")]);
  assert.doesNotMatch(all, /docs\/|crates\//);
  assert.match(all, /curl -sO http:\/\/a\/kymo\.h/);
  assert.ok(all.includes("cfgmaker --global 'WorkDir: /a'\\''b' public@"), all);
  assert.match(all, /public@192\.0\.2\.7/);
});

test('the newest value of some series', () => {
  const series = [['a', 0, 5], ['b', 0, 9], ['c', 0, null]];
  for (const [ids, expect] of [[['@a:x', '@c:x'], 5], [['@a:x', '@b:y'], 9], [['@c:x'], null], [['@d:x'], null]]) assert.equal(newestOf(ids, series), expect);
});
