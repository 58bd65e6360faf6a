import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinFields, query, takeCode } from '../../crates/serve/assets/api.js';
import { cell, csv, frameRows } from '../../crates/serve/assets/csv.js';
import { fromSeries } from '../../crates/serve/assets/frame.js';
import { actionFor } from '../../crates/serve/assets/keys.js';
import { eventParser } from '../../crates/serve/assets/live.js';
import { PANELS, chosen, expand, fieldsOf, numbers, panelOf, wants } from '../../crates/serve/assets/panels.js';
import { catalogue, search } from '../../crates/serve/assets/search.js';
import { loadSettings } from '../../crates/serve/assets/settings.js';
import { covers } from '../../crates/serve/assets/scans.js';

test('CSV: quotes, and no formulas', () => {
  const cases = [['a', 'a'], ['a,b', '"a,b"'], ['say "x"', '"say ""x"""'], ['two\nlines', '"two\nlines"'], ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"], ['+1', "'+1"], ['-bash', "'-bash"], ['@x', "'@x"], ['\t=x', "'\t=x"], [-1.5, '-1.5'], [null, ''], [undefined, ''], [0, '0']];
  for (const [value, expected] of cases) assert.equal(cell(value), expected, JSON.stringify(value));
  assert.equal(csv([['a', 1], ['=b', null]]), "a,1\r\n'=b,\r\n");
});

test('CSV of a frame: what is seen, with extremes', () => {
  const frame = fromSeries({ first: 10, step: 10, count: 3, marks: [], series: [{ id: 'a.b', unit: '%', avg: [1, null, 3], min: [0, null, 2], max: [2, null, 4] }] });
  assert.deepEqual(frameRows(frame, 15, 30), [['time', 'time (UTC)', 'a.b [%]', 'a.b [%] min', 'a.b [%] max'], [20, '1970-01-01T00:00:20.000Z', null, null, null], [30, '1970-01-01T00:00:30.000Z', 3, 2, 4]]);
});

test('events of a stream, however it is cut', () => {
  const stream = ': hello\n\nevent: sample\ndata: {"time":1}\n\nevent: mark\r\ndata: a\r\ndata: b\r\n\r\n';
  for (let size = 1; size < 20; size++) {
    const feed = eventParser();
    const found = [];
    for (let at = 0; at < stream.length; at += size) found.push(...feed(stream.slice(at, at + size)));
    assert.deepEqual(found, [{ kind: 'sample', text: '{"time":1}' }, { kind: 'mark', text: 'a\nb' }], `pieces of ${size}`);
  }
});

test('ids in a query: commas and percent signs within names are encoded once more', () => {
  assert.equal(joinFields(['cpu.user', 'net.rx_kb:a,b%c']), 'cpu.user,net.rx_kb:a%2Cb%25c');
  assert.equal(query({ at: 5, over: undefined, filter: '' }), '?at=5');
  assert.equal(query({}), '');
});

test('the code leaves the address, and only the code is taken', () => {
  const replaced = [];
  const history = { state: null, replaceState: (...all) => replaced.push(all[2]) };
  assert.equal(takeCode({ hash: '#code=a%2Bb', pathname: '/x/', search: '?range=60' }, history), 'a+b');
  assert.equal(takeCode({ hash: '#else', pathname: '/', search: '' }, history), null);
  assert.deepEqual(replaced, ['/x/?range=60']);
});

test('instances: in the order of their numbers, and only of their field', () => {
  const known = new Set(['cpu.total:10', 'cpu.total:2', 'cpu.total_more:1', 'cpu.total'].values());
  const layers = expand([{ id: 'cpu.total:*', label: '', colour: 1 }], known.values());
  assert.deepEqual(layers.map(({ id, label, colour }) => [id, label, colour]), [['cpu.total:2', '2', 1], ['cpu.total:10', '10', 2]]);
});

// the keys of a map are an iterator: the second layer found it empty
test('instances of two layers are all found', () => {
  const known = new Map([['d.r:a', 1], ['d.w:a', 1]]).keys();
  assert.equal(expand([{ id: 'd.r:*', label: 'r' }, { id: 'd.w:*', label: 'w' }], known).length, 2);
});

test('panels: fields of a split panel, of a peak', () => {
  const cpu = PANELS.find((panel) => panel.id === 'cpu');
  assert.ok(fieldsOf([cpu]).includes('cpu.total'));
  assert.deepEqual(fieldsOf([chosen(cpu, ['cpu'])]), ['cpu.total:*']);
  assert.ok(fieldsOf(PANELS).includes('memory.anon'));
  assert.equal(wants(['disk.util:*'])('disk.util:sda'), true);
  assert.equal(wants(['disk.util:*'])('disk.utility'), false);
  assert.deepEqual(panelOf(['disk.read_kb:*', 'disk.write_kb'], 0).layers.map((each) => each.label), ['read_kb', 'write_kb']);
});

test('numbers of a layer are in base units; what is not known is a gap', () => {
  const frame = fromSeries({ first: 1, step: 1, count: 2, series: [{ id: 'b', unit: 'KiB', avg: [1, null] }] });
  assert.deepEqual(numbers({ id: 'b' }, frame, 'avg', 1024), [1024, null]);
  assert.equal(numbers({ id: 'c' }, frame, 'avg', 1), null);
});

test('search: all words, the best name first', () => {
  const all = catalogue([{ name: 'disk', help: 'Block devices.', instances: ['sda'], columns: [{ name: 'reads', unit: '1/s', help: 'Reads completed' }], each: [{ name: 'read_wait', unit: 'ms', help: 'Mean time of a read' }] }, { name: 'cpu', help: '', instances: [], columns: [{ name: 'wait', unit: '%', help: 'Idle while a task waits for I/O' }], each: [{ name: 'x', unit: '', help: '' }] }]);
  assert.deepEqual(all.map((field) => field.id), ['disk.reads', 'disk.read_wait:*', 'disk.read_wait:sda', 'cpu.wait']);
  assert.deepEqual(search(all, 'WAIT disk').map((field) => field.id), ['disk.read_wait:*', 'disk.read_wait:sda']);
  assert.equal(search(all, 'wait')[0].id, 'cpu.wait');
  assert.equal(search(all, '').length, 4);
  assert.equal(search(all, 'block wait').length, 2, 'what the subsystem is about');
  assert.equal(search(all, 'nothing').length, 0);
});

test('keys: ours, and not while somebody writes', () => {
  const event = (key, more = {}) => ({ key, target: { tagName: 'BODY' }, ...more });
  assert.equal(typeof actionFor(event('l')), 'function');
  assert.equal(typeof actionFor(event('L')), 'function');
  assert.equal(actionFor(event('l', { target: { tagName: 'INPUT' } })), undefined);
  assert.equal(actionFor(event('l', { ctrlKey: true })), undefined);
  assert.equal(actionFor(event('y')), undefined);
});

test('settings: what is not known is the default', () => {
  const store = (text) => ({ getItem: () => text });
  assert.equal(loadSettings(store(null)).bytes, 'binary');
  assert.equal(loadSettings(store('{')).bytes, 'binary');
  assert.equal(loadSettings(store('{"bytes":"<b>","zone":"utc"}')).bytes, 'binary');
  assert.equal(loadSettings(store('{"bytes":"<b>","zone":"utc"}')).zone, 'utc');
});

test('a scan covers what is after the one before', () => {
  const scan = { at: 30, previous: 25 };
  for (const [moment, expected] of [[25, false], [25.1, true], [30, true], [30.1, false], [null, false]]) assert.equal(covers(scan, moment), expected, String(moment));
});
