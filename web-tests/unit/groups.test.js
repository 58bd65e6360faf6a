// Control groups: tree, list, which use most, short names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupLines, groupsOf, parentOf, shortNames, usual } from '../../crates/serve/assets/group-rows.js';

const ROWS = groupsOf({
  columns: [{ name: 'group' }, { name: 'groups' }, { name: 'cpu' }, { name: 'memory_kb' }],
  rows: [['/', 6, 9, 10], ['/a', 3, 5, 9], ['/a/x', 1, 1, 3], ['/a/y', 1, 4, 2], ['/a-b', 1, null, 8], ['/deep/er/z', 1, 2, 1]],
});
const lines = (options) => groupLines(ROWS.slice(), { sort: '-cpu', ...options }).map(({ name, depth }) => `${'  '.repeat(depth)}${name}`);

test('a tree is sorted within each group, and whoever has no row is passed over', () => {
  for (const [options, expect] of [
    [{}, ['/', '  a', '    y', '    x', '  deep/er/z', '  a-b']],
    [{ sort: 'cpu' }, ['/', '  deep/er/z', '  a', '    x', '    y', '  a-b']],
    [{ sort: 'group' }, ['/', '  a', '    x', '    y', '  a-b', '  deep/er/z']],
    [{ filter: 'X' }, ['/', '  a', '    x']],
    [{ filter: 'nobody' }, []],
    [{ listed: true }, ['/', '/a', '/a/y', '/deep/er/z', '/a/x', '/a-b']],
    [{ listed: true, filter: 'a/' }, ['/a/y', '/a/x']],
  ])
    assert.deepEqual(lines(options), expect, JSON.stringify(options));
  // the root has no row: its groups are roots
  assert.deepEqual(groupLines(ROWS.slice(1), { sort: '-cpu' }).map(({ name, depth }) => [name, depth]), [['/a', 0], ['y', 1], ['x', 1], ['/deep/er/z', 0], ['/a-b', 0]]);
});

test('which use most are groups that have none below them', () => {
  assert.deepEqual(usual(ROWS, '-cpu', 2), ['/a/y', '/deep/er/z']);
  assert.deepEqual(usual(ROWS, 'memory_kb', 2), ['/a-b', '/a/x']);
  assert.deepEqual(usual(ROWS, 'group', 9), ['/a/y', '/deep/er/z', '/a/x', '/a-b']);
  assert.deepEqual(usual([], '-cpu', 9), []);
});

test('short names are no two alike', () => {
  assert.deepEqual(shortNames(['/', '/a/x', '/b/x', '/b/y']), ['/', '/a/x', '/b/x', 'y']);
  const called = [{ group: '/a/x', container: 'web' }, { group: '/b/x', container: '' }, { group: '/b/y', container: 'p/web' }];
  assert.deepEqual(shortNames(['/a/x', '/b/x', '/b/y'], called), ['web', 'x', 'p/web']);
  assert.deepEqual(['/', '/a', '/a/b'].map(parentOf), [null, '/', '/a']);
});

test('a text is looked for in the names that a runtime keeps, too', () => {
  const rows = [
    { group: '/docker/1', name: 'web', image: 'nginx:1', pod: '', namespace: '' },
    { group: '/docker/2', name: 'db', image: 'redis', pod: 'front', namespace: 'shop' },
    { group: '/x.service' },
  ];
  const found = (filter) => groupLines(rows, { filter, listed: true, sort: 'group' }).map(({ row }) => row.group);
  assert.deepEqual(found('NGINX'), ['/docker/1']);
  assert.deepEqual(found('shop'), ['/docker/2']);
  assert.deepEqual(found('.service'), ['/x.service']);
});
