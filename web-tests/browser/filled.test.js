// Views open with something to see: charts, the charts of a host that sends, where there are values, or lines to copy.
import assert from 'node:assert/strict';
import { has, on, until } from './on.js';

const HOSTILE = '<b>web2';
const now = () => Date.now() / 1000;

on('All fields opens with a chart of each subsystem', { path: '?view=fields' }, async (page) => {
  await until(page, () => document.querySelectorAll('#view-fields .card canvas').length === 5 && /\d/.test(document.querySelector('#view-fields .key b')?.textContent));
  await page.locator('.fields button', { hasText: 'cpu.steal' }).first().click();
  await until(page, () => document.querySelectorAll('#view-fields .card').length === 1);
});

const sent = () => ({ hosts: { web1: now() + 600, [HOSTILE]: now() - 86460 }, notified: [{ time: now() - 100, until: now() - 100, kind: 'failure', text: `${HOSTILE}/load/load: <img src=x onerror=alert(1)>`, host: HOSTILE }] });

on('Series opens with the charts of who sent last', { path: '?view=series', served: sent }, async (page) => {
  await until(page, () => document.querySelectorAll('#view-series .card canvas').length === 8 && /\d/.test(document.querySelector('#view-series .key b')?.textContent));
  assert.equal(await page.locator('#view-series .above').isVisible(), false);
});

on('a host of collectd: CPUs by state, each on demand, memory, interfaces, disks, file systems, load', { path: '?view=series&host=web1', served: sent }, async (page) => {
  await until(page, () => document.querySelectorAll('#view-series .card canvas').length > 7);
  assert.deepEqual((await page.locator('#view-series .card').evaluateAll((all) => all.map((each) => each.getAttribute('aria-label')))).slice(0, 7), ['CPU', 'Load', 'Memory', 'File systems', 'eth0', 'lo', 'sda']);
  const legend = (panel) => page.locator(`.card[data-panel=${panel}] .legend`).textContent();
  await until(page, () => /\d/.test(document.querySelector('.card[data-panel=hostdf] .key b')?.textContent));
  assert.equal(await legend('hostcpu'), 'user10 %system10 %wait10 %');
  assert.equal(await legend('hostdf'), 'root40 %var95 %');
  assert.match(await legend('hosteth0'.replace('hosteth0', 'hostinterfaceeth0')), /received.*sent/);
  await page.locator('.card[data-panel=hostcpu] .split').click();
  await until(page, () => document.querySelector('.card[data-panel=hostcpu] .legend').textContent === '030 %130 %');
  await has(page, '#view-series .problems', 'file system var is 95 % full');
});

on('a host with more CPUs than one question has room for', { path: '?view=series&host=large', served: () => ({ hosts: { large: now() + 600 } }) }, async (page) => {
  await until(page, () => document.querySelector('.card[data-panel=hostcpu] .legend')?.textContent === 'user10 %nice10 %system10 %interrupt10 %steal10 %wait10 %');
  assert.equal(await page.locator('#view-series .card').count(), 1);
});

on('a host that fell silent says when it was last heard, and one click goes there', { path: `?view=series&host=${encodeURIComponent(HOSTILE)}`, served: sent }, async (page) => {
  await has(page, '#view-series .elsewhere', '1 d ago');
  await has(page, '#view-series .problems', 'silent: the last values came');
  await has(page, '#view-series .problems', 'failure: <b>web2/load/load: <img src=x onerror=alert(1)>');
  assert.equal(await page.locator('main img, main li b').count(), 0);
  await page.locator('.elsewhere button').click();
  await until(page, () => /\d/.test(document.querySelector('.card[data-panel=hostload] .key b')?.textContent));
  await until(page, () => document.querySelector('#view-series .elsewhere').hidden);
  const thru = Number(new URL(page.url()).searchParams.get('thru'));
  assert.ok(Math.abs(thru - (now() - 86400)) < 300, `${thru}`);
});

on('a range outside of the recording says where it is', {}, async (page, server) => {
  const { from } = server.machine;
  await page.goto(`${server.url}?from=${from - 7200}&thru=${from - 3600}`);
  await has(page, '#view-now .elsewhere', 'No values in these 1 h');
  await page.locator('.elsewhere button').click();
  await until(page, () => /\d/.test(document.querySelector('.card[data-panel=cpu] .key b')?.textContent));
});

for (const [view, wanted] of [['hosts', '  <Server "192.0.2.7" "25826">'], ['series', 'statsd = ["127.0.0.1:8125"]'], ['programs', 'kymo.h -O http://127.0.0.1'], ['targets', 'public@192.0.2.7']])
  on(`the empty tab ${view} has the lines that would fill it`, { path: `?view=${view}` }, async (page) => {
    await has(page, `#view-${view} .copied pre`, wanted);
    assert.doesNotMatch(await page.locator(`#view-${view}`).textContent(), /docs\//);
    const box = page.locator(`#view-${view} .copied`).first();
    await box.locator('button').click();
    await until(page, (name) => /copied|selected/.test(document.querySelector(`#view-${name} .copied button`).textContent), view);
  });

on('a live page asks for processes once a scan, and less often for what changed', { served: { recorded: ['sensors'] } }, async (page, server) => {
  const asked = (name) => server.state.requests.filter((each) => each.includes(`/${name}?`)).length;
  await until(page, () => document.querySelectorAll('.movers li').length > 0);
  const before = { processes: asked('processes'), movers: asked('movers') };
  await page.waitForTimeout(11000);
  const count = { processes: asked('processes') - before.processes, movers: asked('movers') - before.movers };
  assert.ok(count.processes >= 1 && count.processes <= 3 && count.movers <= 1, JSON.stringify(count));
});
