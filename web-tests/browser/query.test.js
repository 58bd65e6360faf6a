// The view of expressions over the made-up machine.
import assert from 'node:assert/strict';
import { HOSTILE_DISK } from '../fixture/machine.js';
import { has, on, until } from './on.js';
import { hearsKeys } from './open.js';

const parameter = (page, name) => new URL(page.url()).searchParams.get(name);
const box = '#view-query textarea';
const asked = ({ state }, path) => state.asked.filter((each) => each.path === path);
const lines = (page, count) => until(page, (wanted) => document.querySelectorAll('#view-query .key').length === wanted && document.querySelector('#view-query canvas'), count);

on('an expression is drawn, and its address is the view', {}, async (page, server) => {
  await hearsKeys(page);
  await page.keyboard.press('x');
  await has(page, '#view-query .examples', 'node_load1');
  // an example without an answer here is none
  assert.ok(!(await page.locator('#view-query .examples').textContent()).includes('node_filesystem'));
  await page.locator(box).fill('rate(node_cpu_seconds_total[1m])');
  await page.keyboard.press('Enter');
  await lines(page, 4);
  assert.equal(parameter(page, 'expr'), 'rate(node_cpu_seconds_total[1m])');
  await has(page, '#view-query h3 small', 'job="node"');
  await has(page, '#view-query .sub', '4 series');
  await page.locator('#view-query .step').fill('30s');
  await page.keyboard.press('Enter');
  await until(page, () => new URL(location).searchParams.get('step') === '30s');
  await has(page, '#view-query .sub', 'step 30 s');
  assert.equal(asked(server, 'query_range').at(-1).step, '30');
  // the same address elsewhere
  await page.goto(page.url());
  await lines(page, 4);
  assert.equal(await page.locator(box).inputValue(), 'rate(node_cpu_seconds_total[1m])');
  await page.goBack();
});

on('numbers at the cursor, lines hidden, and Back to the expression before', { path: '?view=query&expr=node_load1' }, async (page) => {
  await lines(page, 1);
  const plot = await page.locator('#view-query .u-over').boundingBox();
  await page.mouse.move(plot.x + plot.width / 2, plot.y + 40);
  await until(page, () => /\d/.test(document.querySelector('#view-query .key b').textContent) && !document.querySelector('#view-query .line.cursor').hidden);
  await page.locator(box).fill('node_cpu_seconds_total');
  await page.keyboard.press('Enter');
  await lines(page, 4);
  await page.locator('#view-query .key').first().click();
  await until(page, () => document.querySelector('#view-query .key').getAttribute('aria-pressed') === 'false');
  await page.goBack();
  await lines(page, 1);
  assert.equal(await page.locator(box).inputValue(), 'node_load1');
});

on('the table has labels and values, sorts, and is a file; names are never HTML', { path: '?view=query&expr=node_disk_read_bytes_total' }, async (page) => {
  await lines(page, 2);
  await has(page, '#view-query .key span', HOSTILE_DISK);
  await page.locator('#view-query .buttons button', { hasText: 'table' }).click();
  await has(page, '.answers td', HOSTILE_DISK);
  assert.equal(parameter(page, 'form'), 'table');
  const first = () => page.locator('.answers tbody tr').first().textContent();
  await page.locator('.answers th button', { hasText: 'device' }).click();
  const before = await first();
  await page.locator('.answers th button', { hasText: 'device' }).click();
  assert.notEqual(await first(), before);
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('#csv').click()]);
  let text = '';
  for await (const part of await file.createReadStream()) text += part;
  assert.match(text, /^metric,device,instance,job,value\r\n/);
  // a range of samples has no graph, and a number is one
  await page.locator(box).fill('node_load1[5m]');
  await page.keyboard.press('Enter');
  await has(page, '.answers th', 'time');
  await page.locator(box).fill('42');
  await page.keyboard.press('Enter');
  await has(page, '.answers td', '42');
});

on('completion: names, labels, values', { path: '?view=query' }, async (page, server) => {
  await page.locator(box).click();
  await page.keyboard.type('rate(node_c');
  await has(page, '.words li .name', 'node_cpu_seconds_total');
  await page.keyboard.press('Tab');
  await page.keyboard.type('{mo');
  await has(page, '.words li .name', 'mode');
  await page.keyboard.press('Tab');
  await page.keyboard.type('="');
  await has(page, '.words li .name', 'system');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator(box).inputValue(), 'rate(node_cpu_seconds_total{mode="user"');
  assert.equal(asked(server, 'label/mode/values').at(-1)['match[]'], 'node_cpu_seconds_total');
  await page.keyboard.type('}[');
  await has(page, '.words li .name', '5m');
  await page.keyboard.press('Escape');
  await until(page, () => document.querySelector('.words').hidden);
  await page.keyboard.type('1m])');
  await page.keyboard.press('Enter');
  await until(page, () => new URL(location).searchParams.get('expr') === 'rate(node_cpu_seconds_total{mode="user"}[1m])');
});

on('an error has its place, remarks are said, a range of samples is for the table', { path: '?view=query&expr=node_load1%20bad' }, async (page) => {
  await has(page, '#view-query .note', 'cannot read the expression: unexpected <b>identifier</b> "bad"');
  assert.equal(await page.locator('#view-query .place').textContent(), `node_load1 bad\n${' '.repeat(11)}^`);
  await page.locator(box).fill('node_load1 + warned');
  await page.keyboard.press('Enter');
  await has(page, '.remarks', 'rows of 5 minutes');
  await until(page, () => document.querySelector('#view-query .note').hidden);
  await page.locator(box).fill('node_load1[5m]');
  await page.keyboard.press('Enter');
  await page.locator('#view-query .note button').click();
  await has(page, '.answers th', 'time');
});

on('history is kept in this browser', { path: '?view=query&expr=node_load1' }, async (page) => {
  await lines(page, 1);
  await page.locator(box).fill('node_cpu_seconds_total');
  await page.keyboard.press('Enter');
  await lines(page, 4);
  await page.reload();
  await lines(page, 4);
  await page.locator('#view-query button', { hasText: 'history' }).click();
  assert.deepEqual(await page.locator('.past code').allTextContents(), ['node_cpu_seconds_total', 'node_load1']);
  await page.locator('.past code').last().click();
  await lines(page, 1);
  await page.locator('#view-query button', { hasText: 'history' }).click();
  await page.locator('.past button', { hasText: 'forget' }).click();
  await has(page, '.past', 'Nothing was asked');
});

on('a question ends when another one begins, and when the tab is left', { path: '?view=query&expr=slow' }, async (page, server) => {
  const gone = (count) => server.state.gone === count;
  const eventually = async (is) => { for (let n = 0; n < 300 && !is(); n++) await page.waitForTimeout(50); assert.ok(is()); };
  await eventually(() => asked(server, 'query_range').length === 1);
  await page.locator(box).fill('node_load1');
  await page.keyboard.press('Enter');
  await lines(page, 1);
  await eventually(() => gone(1));
  await page.locator(box).fill('slow + 1');
  await page.keyboard.press('Enter');
  await eventually(() => asked(server, 'query_range').length === 3);
  await page.locator('#tabs [data-view=raw]').click();
  await eventually(() => gone(2));
});

on('a tab that is not looked at asks for nothing', { path: '?view=query&expr=node_load1' }, async (page, server) => {
  await page.clock.install();
  await page.goto(page.url());
  await lines(page, 1);
  const count = () => asked(server, 'query_range').length;
  const before = count();
  await page.clock.runFor(16000);
  await until(page, () => true);
  for (let n = 0; n < 100 && count() === before; n++) await new Promise((done) => setTimeout(done, 50));
  assert.equal(count(), before + 1, 'a live range is asked for again');
  await page.locator('#tabs [data-view=raw]').click();
  await page.clock.runFor(60000);
  assert.equal(count(), before + 1);
});

on('the box on a phone', { path: '?view=query&expr=node_cpu_seconds_total', width: 360, height: 740 }, async (page) => {
  await lines(page, 4);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the screen');
});
