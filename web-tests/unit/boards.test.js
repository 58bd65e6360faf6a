// Boards: names, legends, the order of charts; dashboards of Grafana as boards.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boardOf, chartOf, legendOf, moved, nameOf, titleOf } from '../../crates/serve/assets/boards-kept.js';
import { fromGrafana, isDashboard, substituted } from '../../crates/serve/assets/grafana.js';

test('names of boards are words of an address', () => {
  for (const [title, name] of [['Web servers', 'web-servers'], ['  Café & <b>Co</b> ', 'cafe-b-co-b'], ['日本', ''], ['a'.repeat(80), 'a'.repeat(64)], ['../x', 'x']]) assert.equal(nameOf(title), name);
});

test('a card is a chart of the page, or its fields; computed ones are none', () => {
  const layers = [{ id: 'cpu.user' }, { id: 'disk.util:*' }];
  assert.deepEqual(chartOf({ id: 'cpu', title: 'CPU', layers }), { panel: 'cpu' });
  assert.deepEqual(chartOf({ id: 'board0', title: 'x', layers }), { title: 'x', fields: ['cpu.user', 'disk.util:*'] });
  assert.equal(chartOf({ id: 'host', title: 'x', layers: [{ id: 'a', parts: ['b'] }] }), null);
  assert.equal(chartOf({ id: 'p', title: 'x', layers, needs: ['c'] }), null);
});

test('legends, titles, order', () => {
  assert.equal(legendOf('{{mode}} of {{ cpu }}{{none}}', { mode: '<b>', cpu: '0' }), '<b> of 0');
  assert.equal(titleOf({ queries: [{ expr: 'a' }, { expr: 'b' }] }), 'a, b');
  assert.equal(titleOf({ panel: 'cpu' }), 'cpu');
  assert.deepEqual(moved(['a', 'b', 'c'], 0, 1), ['b', 'a', 'c']);
  assert.deepEqual(moved(['a', 'b'], 0, -1), ['a', 'b']);
  for (const odd of [null, 1, {}, { version: 2, title: '', charts: [] }]) assert.throws(() => boardOf(odd));
});

test('variables: those with a value have it, those of queries stand for everything', () => {
  const variables = new Map([['__rate_interval', '1m'], ['job', null], ['node', null], ['top', '5']]);
  for (const [expr, expect] of [
    ['rate(a{job="$job"}[$__rate_interval])', 'rate(a{job=~".*"}[1m])'],
    ['a{instance=~"${node:regex}:9100",x="y"}', 'a{instance=~".*:9100",x="y"}'],
    ["topk($top, a{job!='[[job]]'})", "topk(5, a{job=~'.*'})"],
    ['a{b="c$"}', 'a{b="c$"}'],
  ]) assert.equal(substituted(expr, variables), expect);
  assert.throws(() => substituted('sum by ($node) (a)', variables), /uses \$node outside of a matcher/);
});

test('panels of four kinds become charts, the others are named', () => {
  const dashboard = {
    title: 'Node <b>',
    templating: { list: [{ name: 'job', type: 'query', current: { value: 'node' } }, { name: 'k', type: 'custom', current: { value: '3' } }] },
    panels: [
      { type: 'timeseries', title: 'CPU', gridPos: { w: 24 }, targets: [{ expr: 'rate(cpu{job="$job"}[5m])', legendFormat: '{{mode}}' }, { expr: 'x', hide: true }], fieldConfig: { defaults: { unit: 'percentunit' } } },
      { type: 'row', title: 'more', panels: [{ type: 'gauge', title: 'Load', targets: [{ expr: 'topk($k, load)', legendFormat: '__auto' }] }] },
      { type: 'table', title: 'Disks', targets: [{ expr: 'disk' }], fieldConfig: { defaults: { unit: 'bytes' } } },
      { type: 'heatmap', title: 'Heat', targets: [{ expr: 'h' }] },
      { type: 'stat', title: 'Logs', targets: [{ expr: 'x', datasource: { type: 'loki' } }] },
      { type: 'stat', title: 'Nothing', targets: [] },
      { type: 'text', options: { content: '<script>' } },
    ],
  };
  assert.ok(isDashboard(dashboard) && !isDashboard({ version: 1, charts: [], title: '' }) && !isDashboard(null));
  const { board, left } = fromGrafana(dashboard, 'file');
  assert.deepEqual(board, {
    version: 1,
    title: 'Node <b>',
    charts: [
      { title: 'CPU', queries: [{ expr: '(rate(cpu{job=~".*"}[5m])) * 100', legend: '{{mode}}' }], form: 'graph', unit: '%', wide: true },
      { title: 'Load', queries: [{ expr: 'topk(3, load)' }], form: 'stat' },
      { title: 'Disks', queries: [{ expr: 'disk' }], form: 'table', unit: 'B' },
    ],
  });
  assert.deepEqual(left, ['Heat: panels of type heatmap are not drawn here', 'Logs: asks loki, not Prometheus', 'Nothing: has no expression', 'text: panels of type text are not drawn here']);
});

test('odd dashboards are boards too, and nothing throws', () => {
  for (const odd of [{ panels: [] }, { panels: [null, 1, 'x', {}], title: 5 }, { rows: [{ panels: [{ type: 'graph', span: 12, title: 'old', targets: [{ expr: 'a' }] }] }] }, { panels: [{ type: '__proto__', targets: [{ expr: 'a' }] }], templating: { list: 'x' } }]) {
    const { board } = fromGrafana(odd, 'file');
    assert.ok(Array.isArray(board.charts));
  }
});
