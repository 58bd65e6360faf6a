// The first minutes with the page: what is in sight, and what it says.
import assert from 'node:assert/strict';
import { has, on, until } from './on.js';
import { ready } from './open.js';

on('the toolbar is one row at 1280 pixels, with all tabs', { width: 1280 }, async (page) => {
  await ready(page);
  await page.evaluate(() => { document.querySelector('[data-view=postgres]').hidden = false; });
  const rows = await page.$$eval('#head > *, #ranges, #live, #lock, #help', (all) => all.map((each) => { const { top, bottom, right } = each.getBoundingClientRect(); return { middle: (top + bottom) / 2, right }; }));
  for (const { middle, right } of rows) {
    assert.ok(Math.abs(middle - rows[0].middle) < 8, JSON.stringify(rows));
    assert.ok(right <= 1280, JSON.stringify(rows));
  }
});

on('processes are in sight without scrolling, and stay while charts scroll', {}, async (page) => {
  await ready(page);
  const seen = () => page.$$eval('.processes tbody tr', (rows) => rows.filter((row) => {
    const { left, top, bottom } = row.getBoundingClientRect();
    return bottom <= innerHeight && row.contains(document.elementFromPoint(left + 20, (top + bottom) / 2));
  }).length);
  assert.ok((await seen()) >= 5, `${await seen()} rows`);
  await page.mouse.wheel(0, 5000);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.ok((await seen()) >= 5, `${await seen()} rows`);
  // the last chart is not behind the table
  const [chart, dock] = await page.evaluate(() => [[...document.querySelectorAll('.charts .card')].at(-1), document.querySelector('.dock')].map((each) => each.getBoundingClientRect().toJSON()));
  assert.ok(chart.bottom <= dock.top, `${chart.bottom} ${dock.top}`);
  await page.evaluate(() => scrollTo(0, 0));
  await page.locator('.size').click();
  await until(page, () => document.querySelector('.dock').dataset.docked === 'false');
  await page.reload();
  await ready(page);
  assert.equal(await page.locator('.dock').getAttribute('data-docked'), 'false');
  await page.locator('.size').click();
  await until(page, () => document.querySelector('.dock').dataset.docked === 'true');
});

on('a recording that has begun just now fills the charts, a minute at least', { served: { history: 5 } }, async (page) => {
  await ready(page);
  await until(page, () => /\((60|61) s\)/.test(document.getElementById('seen').textContent));
});

on('a page that is opened before there is a recording shows it when it is there', { served: { history: 5 } }, async (page, server) => {
  let isThere = false;
  await page.route('**/kymo/v1/status', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...(isThere ? {} : { from: null, thru: null }) } });
  });
  const none = { status: 503, contentType: 'application/json', body: '{"error":"cannot answer: nothing is recorded yet"}' };
  await page.route('**/kymo/v1/series*', (route) => (isThere ? route.continue() : route.fulfill(none)));
  await page.goto(server.url);
  await has(page, '.note', 'nothing is recorded yet');
  isThere = true;
  await ready(page);
  await until(page, () => /\((6\d) s\)/.test(document.getElementById('seen').textContent));
  await until(page, () => !document.querySelector('.note:not([hidden])'));
});

/** Labels of time axes as they were drawn last, by canvas. */
const WATCH = () => {
  globalThis.drawn = new Map();
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...given) {
    globalThis.drawn.set(this.canvas, []);
    return clearRect.apply(this, given);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    // what is centred stands below the plot
    if (this.textAlign === 'center') globalThis.drawn.get(this.canvas)?.push({ text, y, left: x - this.measureText(text).width / 2, right: x + this.measureText(text).width / 2, end: this.canvas.width });
    return fillText.call(this, text, x, y);
  };
};

/** Asserts that labels of each chart of `query` keep apart and within the chart. */
async function hasLabelsApart(page, server, query) {
  await page.goto(`${server.url}?${query}`);
  await ready(page);
  // A chart that has just been made has no labels yet.
  const drawn = await page.waitForFunction(() => {
    const rows = [...globalThis.drawn].filter(([canvas]) => canvas.isConnected).map(([, labels]) => labels.filter(({ text }) => text));
    return rows.length > 5 && rows.every((labels) => labels.length) && rows;
  });
  for (const labels of await drawn.jsonValue()) {
    labels.sort((a, b) => a.left - b.left);
    labels.forEach((each, n) => {
      assert.ok(each.left >= 0 && each.right <= each.end, `${query}: ${JSON.stringify(each)}`);
      assert.ok(n === 0 || each.left - labels[n - 1].right >= 4, `${query}: ${JSON.stringify(labels)}`);
    });
  }
}

for (const locale of ['en-US', 'bg-BG'])
  on(`labels of the time axis never touch in ${locale}`, { locale, served: { history: 40 * 86400 } }, async (page, server) => {
    await page.addInitScript(WATCH);
    for (const range of [10, 77, 300, 3600, 21600, 86400, 3 * 86400, 30 * 86400]) await hasLabelsApart(page, server, `range=${range}`);
  });

on('a label never leaves the chart, wherever its tick is', { locale: 'en-US', served: { history: 3 * 86400 } }, async (page, server) => {
  await page.addInitScript(WATCH);
  // AM is wider than PM.
  const morning = (Math.floor(Date.now() / 86400_000) - 1) * 86400 + 7 * 3600;
  // A pixel is about 13 s; half a label is 16 pixels wider than the room right of the plot.
  for (let thru = morning + 196; thru < morning + 220; thru += 2) await hasLabelsApart(page, server, `from=${thru - 3600}&thru=${thru}`);
});

on('what is not recorded is folded under “+ more”', {}, async (page) => {
  await ready(page);
  await page.waitForSelector('.unrecorded');
  assert.equal(await page.locator('.unrecorded li').first().isVisible(), false);
  assert.equal(await page.locator('.groups').textContent(), '');
  await page.locator('.unrecorded summary').click();
  assert.deepEqual(await page.locator('.unrecorded li').allTextContents(), ['gcgroupsControl groups.', 'EsensorsTemperatures, fans.']);
  assert.equal(await page.locator('.unrecorded pre').textContent(), '[record]\nsubsystems = "+gE"');
});

on('a chart says on hover what it is', {}, async (page) => {
  await ready(page);
  await until(page, () => document.querySelector('.card[data-panel=cpu] h3').title);
  const title = await page.locator('.card[data-panel=cpu] h3').getAttribute('title');
  assert.match(title, /^CPU\nuser: User mode, guests included \(%\)\n/);
  // A chart of what this machine does not have has no lines to explain.
  assert.ok(await page.$$eval('.card:has(.key) h3', (all) => all.length > 7 && all.every((each) => each.title.includes('\n'))));
});

