// Boards over the made-up machine: pinned, arranged, imported, exported; names from outside are texts.
import assert from 'node:assert/strict';
import { TOKEN } from '../fixture/serve.js';
import { has, on, until } from './on.js';
import { hearsKeys, ready } from './open.js';

const parameter = (page, name) => new URL(page.url()).searchParams.get(name);
const tiles = (page, count) => until(page, (wanted) => document.querySelectorAll('#view-boards .tile').length === wanted, count);
const TITLE = 'Web <img src=x onerror=alert(1)>';
const BOARD = {
  version: 1,
  title: TITLE,
  charts: [
    { title: TITLE, queries: [{ expr: 'rate(node_cpu_seconds_total[1m])', legend: '<b>{{mode}}</b>' }] },
    { fields: ['cpu.user', 'cpu.sys'] },
    { panel: 'memory' },
    { queries: [{ expr: 'node_load1' }], form: 'stat', unit: 's' },
    { queries: [{ expr: 'node_disk_read_bytes_total' }], form: 'table', wide: true },
    { panel: 'none' },
  ],
};

/** With the token, as who may keep boards. */
async function unlocked(page) {
  await page.evaluate((token) => localStorage.setItem('kymo.token', token), TOKEN);
  await page.reload();
  await hearsKeys(page);
}

on('a board has graphs, numbers and tables of expressions, fields and panels', { served: { boards: { web: BOARD } }, path: '?view=boards&board=web&range=900' }, async (page, server) => {
  await tiles(page, 6);
  await until(page, () => document.querySelectorAll('#view-boards canvas').length === 3);
  await has(page, '#view-boards .key span', '<b>user</b>');
  await has(page, '#view-boards h3', TITLE);
  await has(page, '#view-boards .stat b', 's');
  await has(page, '#view-boards .answers td', 'node_disk_read_bytes_total');
  await has(page, '#view-boards .fault', 'There is no chart none here.');
  // fields are one question
  assert.equal(server.state.requests.filter((each) => each.includes('/series?')).length, 1);
  // one cursor for all
  const plot = await page.locator('#view-boards .u-over').first().boundingBox();
  await page.mouse.move(plot.x + plot.width / 2, plot.y + 40);
  await until(page, () => document.querySelectorAll('#view-boards .line.cursor:not([hidden])').length === 3);
  // without the token it is read only
  assert.ok(await page.locator('#view-boards button', { hasText: 'edit' }).isHidden());
});

on('an expression and a chart are pinned, arranged, and shared by the address', { path: '?view=query&expr=node_load1' }, async (page, server) => {
  await unlocked(page);
  await page.locator('#view-query button', { hasText: 'pin' }).click();
  await page.locator('dialog input').fill('My board');
  await page.locator('dialog .main').click();
  await tiles(page, 1);
  assert.equal(parameter(page, 'board'), 'my-board');
  await page.keyboard.press('n');
  await ready(page);
  const card = page.locator('.card[data-panel=cpu]');
  await card.hover();
  await card.locator('.topin').click();
  await until(page, () => document.querySelector('dialog select')?.value === 'my-board');
  await page.locator('dialog .main').click();
  await tiles(page, 2);
  const { charts } = server.state.boards['my-board'];
  assert.deepEqual(charts, [{ queries: [{ expr: 'node_load1' }] }, { panel: 'cpu' }]);
  await page.locator('#view-boards button', { hasText: 'edit' }).click();
  const edited = async (act, is) => { await act(); for (let n = 0; n < 200 && !is(server.state.boards['my-board']?.charts); n++) await page.waitForTimeout(25); assert.ok(is(server.state.boards['my-board']?.charts)); };
  await edited(() => page.locator('.tile [aria-label="Move it forward"]').first().click(), (now) => now[0].panel === 'cpu');
  await until(page, () => document.querySelector('.tile .inner .card')?.dataset.panel === 'cpu');
  await edited(() => page.locator('.tile button', { hasText: 'wide' }).first().click(), (now) => now[0].wide);
  const title = page.locator('.tile [aria-label=title]');
  await edited(async () => { await title.fill('Load <b>'); await title.press('Enter'); }, (now) => now[1].title === 'Load <b>');
  await edited(() => page.locator('.tile [aria-label="Remove this chart"]').first().click(), (now) => now.length === 1);
  // changes one right after the other, on a slow line: none is lost, nor what is typed meanwhile
  await page.route('**/boards/my-board', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    await route.continue();
  });
  const first = page.locator('.tile').first();
  await first.locator('button', { hasText: 'wide' }).click();
  await first.locator('[aria-label=unit]').fill('B');
  await first.locator('[aria-label=unit]').press('Enter');
  await title.fill('Load <i>');
  await page.waitForTimeout(700);
  await title.press('Enter');
  const wanted = ({ wide, unit, title: now }) => wide && unit === 'B' && now === 'Load <i>';
  await edited(() => {}, ([chart]) => wanted(chart));
  await page.unroute('**/boards/my-board');
  // somebody else, by the address
  await page.evaluate(() => localStorage.clear());
  await page.goto(page.url());
  await has(page, '#view-boards h3', 'Load <i>');
});

on('a board is exported, deleted, and imported again; a dashboard of Grafana too', { served: { boards: { web: BOARD } }, path: '?view=boards&board=web' }, async (page, server) => {
  await unlocked(page);
  await tiles(page, 6);
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('#view-boards button', { hasText: 'export' }).click()]);
  const path = await file.path();
  assert.equal(file.suggestedFilename(), 'web.json');
  await page.locator('#view-boards button', { hasText: 'delete' }).click();
  await page.locator('dialog .main').click();
  await until(page, () => !new URL(location).searchParams.has('board'));
  assert.deepEqual(server.state.boards, {});
  await page.locator('#view-boards input[type=file]').setInputFiles(path);
  await tiles(page, 6);
  assert.deepEqual(Object.values(server.state.boards), [BOARD]);
  const dashboard = { title: 'Node', panels: [{ type: 'timeseries', title: 'CPU', targets: [{ expr: 'rate(node_cpu_seconds_total{job="$job"}[$__rate_interval])', legendFormat: '{{mode}}' }] }, { type: 'heatmap', title: 'Heat <b>' }], templating: { list: [{ name: 'job', type: 'query' }] } };
  await page.locator('#view-boards input[type=file]').setInputFiles({ name: 'node.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(dashboard)) });
  await tiles(page, 1);
  await has(page, '#view-boards .note:not([hidden])', 'Not shown: Heat <b>: panels of type heatmap are not drawn here');
  await has(page, '#view-boards .key span', 'system');
  assert.equal(server.state.boards.node.charts[0].queries[0].expr, 'rate(node_cpu_seconds_total{job=~".*"}[1m])');
  await page.locator('#view-boards input[type=file]').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{"a":1}') });
  await has(page, '#view-boards .note:not([hidden])', 'it is no board');
});

on('without boards the tab says how one is made', {}, async (page) => {
  await hearsKeys(page);
  await page.keyboard.press('b');
  await has(page, '#view-boards .empty', 'see the lock');
  await unlocked(page);
  await page.keyboard.press('b');
  await has(page, '#view-boards .empty', 'pins them to a board');
});

on('of many charts those in sight are asked', { served: { boards: { web: { version: 1, title: 'x', charts: Array.from({ length: 60 }, (_, n) => ({ queries: [{ expr: `node_load1 + ${n}` }] })) } } }, path: '?view=boards&board=web' }, async (page, server) => {
  await until(page, () => document.querySelectorAll('#view-boards canvas').length >= 6);
  await page.waitForTimeout(1000);
  const asked = () => new Set(server.state.asked.map(({ query }) => query));
  assert.ok(asked().size < 30, `${asked().size} of 60`);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await until(page, () => document.querySelectorAll('#view-boards .tile')[59].querySelector('canvas'));
  assert.ok(asked().has('node_load1 + 59') && asked().size < 60);
});

on('a board that is not looked at asks for nothing', { served: { boards: { web: BOARD } }, path: '?view=boards&board=web' }, async (page, server) => {
  await page.clock.install();
  await page.goto(page.url());
  await has(page, '#view-boards .stat b', 's');
  await until(page, () => document.querySelector('#view-boards .answers td'));
  const count = () => server.state.asked.length;
  const before = count();
  await page.clock.runFor(16000);
  for (let n = 0; n < 100 && count() < before + 3; n++) await new Promise((done) => setTimeout(done, 50));
  assert.equal(count(), before + 3, 'each expression once more');
  await page.locator('#tabs [data-view=raw]').click();
  await page.clock.runFor(60000);
  assert.equal(count(), before + 3);
});
