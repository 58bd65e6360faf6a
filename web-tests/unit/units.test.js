import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted, fine, format, increments, measure, tick } from '../../crates/serve/assets/units.js';

const BINARY = { bytes: 'binary', bits: false, locale: 'en-GB' };
const DECIMAL = { bytes: 'decimal', bits: false, locale: 'en-GB' };
const BITS = { bytes: 'binary', bits: true, locale: 'en-GB' };

test('values are written in the reader’s units', () => {
  const cases = [
    [0, 'KiB/s', 'disk.read_kb', BINARY, '0 B/s'],
    [1, 'KiB/s', 'disk.read_kb', BINARY, '1 KiB/s'],
    [1536, 'KiB/s', 'disk.read_kb', BINARY, '1.5 MiB/s'],
    [1000, 'KiB/s', 'disk.read_kb', DECIMAL, '1 MB/s'],
    [1000, 'KiB/s', 'net.rx_kb', BITS, '8.2 Mbit/s'],
    [1000, 'KiB/s', 'disk.read_kb', BITS, '1,000 KiB/s'],
    [16777216, 'KiB', 'memory.total', BINARY, '16 GiB'],
    [1023.9, 'B', '', BINARY, '1 KiB'],
    [0.02, 'KiB/s', 'disk.read_kb', BINARY, '20 B/s'],
    [12.34, '%', 'cpu.user', BINARY, '12.3 %'],
    [0.04, '%', 'cpu.user', BINARY, '0.04 %'],
    [250, '%', 'process', BINARY, '250 %'],
    [1.84, '', 'cpu.load1', BINARY, '1.8'],
    [14000, '1/s', 'cpu.ctxsw', BINARY, '14 k/s'],
    [276, '1/s', 'cpu.ctxsw', BINARY, '276 /s'],
    [0.35, 'ms', 'disk.read_wait', BINARY, '350 µs'],
    [1500, 'ms', 'disk.read_wait', BINARY, '1.5 s'],
    [7200, 's', 'x', BINARY, '2 h'],
    [-1536, 'KiB', 'x', BINARY, '-1.5 MiB'],
    [5, 'furlong', 'x', BINARY, '5 furlong'],
    [null, '%', 'cpu.user', BINARY, '–'],
    [undefined, '%', 'cpu.user', BINARY, '–'],
    [NaN, '%', 'cpu.user', BINARY, '–'],
  ];
  for (const [value, unit, id, settings, expected] of cases) assert.equal(format(value, unit, id, settings), expected, `${value} ${unit} ${id}`);
});

test('numbers follow the locale', () => {
  assert.equal(format(1536, 'KiB/s', 'x', { ...BINARY, locale: 'de-DE' }), '1,5 MiB/s');
});

test('a tick is short', () => {
  const cases = [[0, 'KiB/s', BINARY, '0'], [33554432, 'KiB/s', BINARY, '32 MiB'], [50, '%', BINARY, '50%'], [12000, '1/s', BINARY, '12k']];
  for (const [value, unit, settings, expected] of cases) assert.equal(tick(value, measure(unit, 'x', settings), settings), expected);
});

test('steps between ticks are powers of two where bytes are shown so', () => {
  assert.ok(increments(measure('KiB', 'x', BINARY), BINARY).includes(1048576));
  assert.ok(!increments(measure('KiB', 'x', DECIMAL), DECIMAL).includes(1048576));
  assert.ok(increments(measure('%', 'x', BINARY), BINARY).includes(20));
});

test('what kymo costs has two digits', () => {
  assert.equal(fine(0.123, BINARY), '0.12 %');
  assert.equal(fine(null, BINARY), '–');
});

test('a number and its noun agree', () => {
  const texts = [0, 1, 2, 1234].map((n) => counted(n, 'connection', 'en-US'));
  assert.deepEqual(texts, ['0 connections', '1 connection', '2 connections', '1,234 connections']);
});
