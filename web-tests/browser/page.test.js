// The page in Chromium over the made-up machine, whose names are hostile. Every test ends with the same question: did
// anything leave the origin, break the policy, or throw?
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { FORMULA_PROCESS, HOSTILE_DISK, HOSTILE_NIC, HOSTILE_PROCESS } from '../fixture/machine.js';
import { CODE, TOKEN, serve } from '../fixture/serve.js';
import { hearsKeys, launch, open, ready } from './open.js';

let browser, server;
before(async () => { [browser, server] = await Promise.all([launch(), serve()]); });
after(async () => { await browser.close(); await server.close(); });

/** A test on a page of its own. */
function on(name, options, run) {
  test(name, async () => {
    const target = options.server ?? server;
    const { page, context, seen } = await open(browser, target.url, options);
    try {
      await run(page, seen, target);
      assert.deepEqual(seen, { foreign: [], reports: [], errors: [], dialogs: [] });
    } finally {
      await context.close();
    }
  });
}

const until = (page, condition, given) => page.waitForFunction(condition, given);
const has = (page, selector, wanted) => until(page, ([where, what]) => [...document.querySelectorAll(where)].some((each) => each.textContent.includes(what)), [selector, wanted]);
const parameter = (page, name) => new URL(page.url()).searchParams.get(name);
const column = (page, name) => page.$$eval('.processes thead th', (heads, wanted) => heads.findIndex((head) => head.dataset.column === wanted), name);
const firstCell = (page) => page.$eval('.processes tbody tr td', (cell) => cell.textContent);

/** Where a moment is on a chart, in pixels of the window. */
async function at(page, panel, time) {
  const box = await page.locator(`.card[data-panel=${panel}] .u-over`).boundingBox();
  const [from, thru] = await range(page);
  return { x: box.x + ((time - from) / (thru - from)) * box.width, y: box.y + box.height / 2, box };
}

/** The range in sight, by the address or else by the clock. */
async function range(page) {
  if (parameter(page, 'thru')) return [Number(parameter(page, 'from')), Number(parameter(page, 'thru'))];
  const width = Number(parameter(page, 'range') ?? 900);
  return [Date.now() / 1000 - width, Date.now() / 1000];
}

const fixed = () => `?from=${server.machine.spike[0] - 120}&thru=${server.machine.spike[0] + 300}`;

on('load: graphs, table, what kymo costs, how far back', {}, async (page) => {
  await ready(page);
  await has(page, '#cost', 'kymo costs 0.12 % of a CPU');
  await has(page, '#cost', '0 samples missed');
  await has(page, '#cost', 'reaches back to');
  assert.equal(await page.locator('.card').count(), 11);
  await has(page, '.legend', 'user');
  await has(page, '.moment', 'busiest:');
});

test('backups: their age, what they lack, and that the last one failed', async () => {
  for (const [backup, wanted] of [
    [{ age: 300, left_out: 0, failed: false }, / · backed up 5 min ago$/],
    [{ age: 300, left_out: 2, failed: true }, / · backed up 5 min ago without 2 files, the last backup failed$/],
    [{ age: null, left_out: 0, failed: true }, / · not backed up yet, the last backup failed$/],
    [null, /^(?!.*backed up)/],
  ]) {
    server.state.backup = backup;
    const { page, context } = await open(browser, server.url, {});
    await ready(page);
    await has(page, '#cost', 'reaches back to');
    assert.match(await page.locator('.reach').textContent(), wanted);
    await context.close();
  }
});

on('live: a new second is drawn without being asked for', {}, async (page) => {
  await ready(page);
  await until(page, () => document.getElementById('live').dataset.state === 'live');
  const count = () => server.state.requests.filter((each) => each.includes('/series')).length;
  const changed = async () => {
    const before = await page.locator('#seen').textContent();
    await until(page, (old) => document.getElementById('seen').textContent !== old, before);
  };
  // a sample that came between the first answer and the stream is asked for once
  let quiet = false;
  for (let round = 0; round < 5 && !quiet; round++) {
    const asked = count();
    await changed();
    await changed();
    quiet = count() === asked;
  }
  assert.ok(quiet, 'it asks again and again');
  const before = await page.locator('#seen').textContent();
  const picture = await page.locator('.card[data-panel=cpu] canvas').evaluate((canvas) => canvas.toDataURL());
  await until(page, (old) => document.getElementById('seen').textContent !== old, before);
  await until(page, (old) => document.querySelector('.card[data-panel=cpu] canvas').toDataURL() !== old, picture);
});

on('a drag zooms, a double click goes back, Back of the browser too', { path: '' }, async (page) => {
  await ready(page);
  const { x, y } = await at(page, 'cpu', server.machine.spike[0]);
  await page.mouse.move(x - 10, y);
  await page.mouse.down();
  await page.mouse.move(x + 20, y, { steps: 4 });
  await page.mouse.up();
  await until(page, () => new URLSearchParams(location.search).has('thru'));
  const [from, thru] = await range(page);
  assert.ok(from < server.machine.spike[0] && thru > server.machine.spike[0] && thru - from < 300, `${from} ${thru}`);
  assert.equal(await page.locator('#live').getAttribute('data-state'), 'paused');
  await page.goBack();
  await until(page, () => !location.search.includes('thru') && document.getElementById('live').dataset.state === 'live');
  await page.goForward();
  await until(page, () => location.search.includes('thru'));
  await page.mouse.dblclick(x, y);
  await until(page, () => !location.search.includes('thru'));
});

on('ranges, zoom and pan by keyboard', {}, async (page) => {
  await ready(page);
  await page.keyboard.press('4');
  await until(page, () => new URLSearchParams(location.search).get('range') === '3600');
  await page.keyboard.press('+');
  await until(page, () => new URLSearchParams(location.search).get('range') === '1800');
  await page.keyboard.press('[');
  await until(page, () => new URLSearchParams(location.search).has('thru'));
  const [from, thru] = await range(page);
  assert.ok(Math.abs(thru - from - 1800) < 2);
  await page.keyboard.press('l');
  await until(page, () => !location.search.includes('thru'));
  await page.keyboard.press('8');
  await until(page, () => new URLSearchParams(location.search).get('range') === 'all' && document.getElementById('seen').textContent.includes('3 h'));
});

on('the cursor over the spike: the table follows, and leaves with it', {}, async (page) => {
  await ready(page);
  const { x, y } = await at(page, 'pressure', server.machine.spike[0] + 13);
  await page.mouse.move(x, y);
  await until(page, () => document.querySelector('.processes tbody td').textContent === 'cc1');
  await has(page, '.moment', 'cc1 ×4 382 %');
  await until(page, () => /user(79|8\d)/.test(document.querySelector('.card[data-panel=cpu] .legend').textContent));
  await page.mouse.move(5, 5);
  await until(page, () => document.querySelector('.processes tbody td').textContent !== 'cc1');
});

on('a click holds the moment, and its address is the same view for somebody else', {}, async (page) => {
  await ready(page);
  const { x, y } = await at(page, 'cpu', server.machine.spike[0] + 13);
  await page.mouse.click(x, y);
  await page.mouse.move(5, 5);
  await has(page, '.processes h2[data-held=held]', 'Processes at');
  await until(page, () => document.querySelector('.processes tbody td').textContent === 'cc1');
  const other = await open(browser, page.url());
  await ready(other.page);
  await until(other.page, () => document.querySelector('.processes tbody td').textContent === 'cc1');
  await other.context.close();
  await page.keyboard.press('Escape');
  await until(page, () => document.querySelector('.processes h2').dataset.held === 'live');
});

on('why: a held moment and a range, and its lines set filter and graph', {}, async (page) => {
  const [from, thru] = server.machine.spike;
  await page.goto(`${server.url}?at=${from + 12}`);
  await ready(page);
  await has(page, '.changes', 'against 63 min before and 1 earlier day');
  await has(page, '.why li li', 'cc1 x 4 takes 388 % of a CPU on average, new');
  await page.locator('.why li li button').click();
  await until(page, () => new URL(location.href).searchParams.get('filter') === 'cc1');
  await page.locator('.why > li > button').click();
  await until(page, () => new URL(location.href).searchParams.get('view') === 'fields');
  await page.goto(`${server.url}?from=${from - 60}&thru=${thru + 60}`);
  await ready(page);
  await has(page, '.changes h2', 'Why?');
  await has(page, '.why li', 'user mode 96 %');
});

on('what changed here, while nothing is held', {}, async (page) => {
  await page.goto(server.url);
  await ready(page);
  await has(page, '.changes h2', 'What changed here');
});

on('compare two moments by keyboard and by mouse', {}, async (page) => {
  await page.goto(`${server.url}${fixed()}&at=${server.machine.spike[0] - 30}`);
  await ready(page);
  const { x, y } = await at(page, 'cpu', server.machine.spike[0] + 13);
  await page.keyboard.down('Shift');
  await page.mouse.click(x, y);
  await page.keyboard.up('Shift');
  await has(page, '.processes h2', '→ B');
  await until(page, () => document.querySelector('.processes tbody tr').textContent.includes('born'));
  assert.match(await page.locator('.processes tbody tr').first().textContent(), /cc1.*\+97 %/);
  await has(page, '.changes', 'The machine at A and B');
  await page.keyboard.press('Escape');
  await has(page, '.processes h2', 'Processes at');
});

on('keyboard alone: cursor, hold, compare, help', { path: '' }, async (page) => {
  await ready(page);
  for (let n = 0; n < 3; n++) await page.keyboard.press('Shift+ArrowLeft');
  await has(page, '.moment', 'click to hold');
  await page.keyboard.press('p');
  await until(page, () => new URLSearchParams(location.search).has('at'));
  const held = Number(parameter(page, 'at'));
  await page.keyboard.press('Escape');
  await until(page, () => !new URLSearchParams(location.search).has('at'));
  await page.keyboard.press('p');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('c');
  await until(page, () => new URLSearchParams(location.search).has('b'));
  assert.ok(held > 0);
  await page.keyboard.press('?');
  await has(page, 'dialog[open] dd', 'move the cursor by a sample');
  await has(page, 'dialog[open] kbd', 'Ctrl+wheel');
  await page.keyboard.press('Escape');
  await until(page, () => !document.querySelector('dialog'));
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
});

on('sort, filter, tree, groups', {}, async (page) => {
  await page.evaluate((token) => localStorage.setItem('kymo.token', token), TOKEN);
  await page.goto(`${server.url}?at=${server.machine.spike[0] + 12}`);
  await ready(page);
  const name = await column(page, 'rss');
  await page.locator('.processes thead th').nth(name).locator('button').click();
  await until(page, () => document.querySelector('th[data-column=rss]').getAttribute('aria-sort') === 'descending');
  assert.equal(await firstCell(page), 'cc1');
  await page.locator('.processes thead th').nth(name).locator('button').click();
  await until(page, () => document.querySelector('th[data-column=rss]').getAttribute('aria-sort') === 'ascending');
  assert.notEqual(await firstCell(page), 'cc1');
  await page.locator('.processes input').fill('CC1');
  await until(page, () => document.querySelectorAll('.processes tbody tr').length === 4);
  await page.locator('.processes select').selectOption('tree');
  await until(page, () => document.querySelectorAll('.processes tbody tr').length > 4);
  await page.locator('.processes select').selectOption('cgroup');
  await has(page, '.processes tr.group', '/user.slice/user-1000.slice (4)');
  assert.equal(parameter(page, 'group'), 'cgroup');
  assert.equal(parameter(page, 'filter'), 'CC1');
});

on('token: the code opens texts once and leaves the address', {}, async (page) => {
  const own = await serve();
  try {
    await page.goto(`${own.url}#code=${CODE}`);
    await ready(page);
    await has(page, '.processes th', 'Command');
    assert.equal(page.url(), own.url);
    assert.equal(await page.evaluate(() => localStorage.getItem('kymo.token')), TOKEN);
    assert.ok(own.state.requests.every((each) => !each.includes(TOKEN)), 'a token is never in an address');
    const other = await open(browser, own.url, { path: `#code=${CODE}` });
    await has(other.page, '#problem', 'not known or used');
    await ready(other.page);
    assert.equal(await column(other.page, 'command'), -1);
    await other.context.close();
  } finally {
    await page.goto('about:blank');
    await own.close();
  }
});

on('token: pasted, wrong, right, forgotten', {}, async (page) => {
  await ready(page);
  await has(page, '#hint', 'need a token');
  assert.equal(await column(page, 'command'), -1);
  await page.locator('#lock').click();
  await page.locator('dialog input').fill('wrong');
  await page.keyboard.press('Enter');
  await has(page, 'dialog [role=alert]', 'not known');
  await page.locator('dialog input').fill(TOKEN);
  await page.keyboard.press('Enter');
  await has(page, '.processes th', 'Command');
  await page.locator('#lock').click();
  await page.getByText('Forget the token').click();
  await until(page, () => document.querySelector('#lock').textContent === 'locked' && ![...document.querySelectorAll('.processes th')].some((head) => head.textContent === 'Command'));
  assert.equal(await page.evaluate(() => localStorage.getItem('kymo.token')), null);
});

on('token: where all needs one, it is asked for, once, and then all is there', {}, async (page) => {
  const own = await serve({ locked: true });
  try {
    await page.goto(own.url);
    await has(page, 'dialog', 'paste the token');
    await page.locator('dialog input').fill(TOKEN);
    await page.keyboard.press('Enter');
    await ready(page);
    await until(page, () => document.getElementById('live').dataset.state === 'live');
    assert.equal(await page.locator('dialog').count(), 0);
    await until(page, () => !document.querySelector('.note:not([hidden])'));
    await until(page, () => /kymo costs/.test(document.getElementById('cost').textContent));
  } finally {
    await page.goto('about:blank');
    await own.close();
  }
});

on('token: a question from before it, answered after it, does not take it away', {}, async (page) => {
  const own = await serve({ locked: true });
  try {
    const opened = page.waitForResponse('**/kymo/v1/session');
    await page.route('**/kymo/v1/cost', async (route) => {
      if (!route.request().headers().authorization) await opened;
      await route.continue();
    });
    const early = page.waitForRequest('**/kymo/v1/cost');
    const late = page.waitForResponse((response) => response.url().endsWith('/cost') && response.status() === 401);
    await page.goto(own.url);
    await has(page, 'dialog', 'paste the token');
    await early;
    await page.locator('dialog input').fill(TOKEN);
    await page.keyboard.press('Enter');
    await late;
    await has(page, '#cost', 'kymo costs');
    await ready(page);
    assert.equal(await page.evaluate(() => localStorage.getItem('kymo.token')), TOKEN);
  } finally {
    await page.goto('about:blank');
    await own.close();
  }
});

on('phone: no sideways scrolling but in the table', { width: 360, height: 740, hasTouch: true, isMobile: true }, async (page) => {
  await ready(page);
  for (const path of ['', '?view=fields&fields=cpu.user', '?view=events', '?view=raw']) {
    await page.goto(server.url + path);
    await has(page, '#cost', 'kymo costs');
    const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(inner <= outer, `${path}: ${inner} > ${outer}`);
  }
  await page.goto(server.url);
  await ready(page);
  assert.ok(await page.$eval('.scroller', (box) => box.scrollWidth > box.clientWidth));
  await page.locator('.card[data-panel=cpu] .u-over').tap();
  await until(page, () => new URLSearchParams(location.search).has('at'));
});

on('hostile names are text, everywhere', { path: '?split=disk~net' }, async (page) => {
  await ready(page);
  await has(page, '.legend', HOSTILE_DISK);
  await has(page, '.legend', HOSTILE_NIC);
  await has(page, '#host', 'fixture <b>1</b>');
  await page.locator('.processes input').fill('onerror');
  await until(page, () => document.querySelectorAll('.processes tbody tr').length === 1);
  assert.equal(await firstCell(page), HOSTILE_PROCESS);
  assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main script, main b:not(.key b):not(li b)').length), 0);
});

on('CSV: formulas are text, numbers are those that were recorded', {}, async (page) => {
  await ready(page);
  await page.locator('.processes input').fill('calc');
  await until(page, () => document.querySelectorAll('.processes tbody tr').length === 1);
  const [table] = await Promise.all([page.waitForEvent('download'), page.locator('.processes button', { hasText: 'CSV' }).click()]);
  assert.ok((await readFile(await table.path(), 'utf8')).includes(`'${FORMULA_PROCESS}`));
  const [charts] = await Promise.all([page.waitForEvent('download'), page.locator('#csv').click()]);
  const text = await readFile(await charts.path(), 'utf8');
  assert.match(text.split('\r\n')[0], /^time,time \(UTC\),cpu\.user \[%\],/);
  assert.ok(text.split('\r\n').length > 500);
  assert.match(charts.suggestedFilename(), /^kymo-now-\d+\.csv$/);
});

on('PNG of what is seen', {}, async (page) => {
  await ready(page);
  const [picture] = await Promise.all([page.waitForEvent('download'), page.locator('#png').click()]);
  const bytes = await readFile(await picture.path());
  assert.equal(bytes.subarray(1, 4).toString(), 'PNG');
  assert.ok(bytes.readUInt32BE(16) > 900 && bytes.length > 20000);
});

on('all fields: search, put together, the address is the view', { path: '?view=fields' }, async (page) => {
  await has(page, '.fields li', 'cpu.user');
  await hearsKeys(page);
  await page.keyboard.press('/');
  await page.keyboard.type('mean time read');
  await until(page, () => document.querySelectorAll('.fields li').length === 4);
  await page.locator('.fields button', { hasText: HOSTILE_DISK }).click();
  await has(page, '.card h3', `disk.read_wait:${HOSTILE_DISK}`);
  await page.locator('#view-fields input').fill('steal');
  await page.locator('.fields button', { hasText: 'cpu.steal' }).first().click();
  await until(page, () => document.querySelectorAll('#view-fields .key').length === 2 && document.querySelector('#view-fields h3').textContent === 'disk + cpu');
  await until(page, () => !document.querySelector('#view-fields .key:last-child b').textContent.includes('–'));
  const other = await open(browser, page.url());
  await has(other.page, '.card h3', 'disk + cpu');
  await until(other.page, () => document.querySelectorAll('#view-fields .key').length === 2);
  await other.context.close();
});

// a view that was away must not take samples of other fields for gaps
on('coming back to a view leaves no gap', { path: '?range=60&fields=memory.free' }, async (page) => {
  await ready(page);
  for (const name of ['f', 'n', 'e', 'n']) {
    const answered = name === 'n' ? page.waitForResponse(/kymo\/v1\/series/) : null;
    await page.keyboard.press(name);
    await answered;
    const old = await page.locator('#seen').textContent();
    await until(page, (before) => document.getElementById('seen').textContent !== before, old);
  }
  await until(page, () => document.getElementById('live').dataset.state === 'live');
  await has(page, '.legend', 'user');
  const seconds = 12;
  for (let n = 1; n < seconds; n++) assert.equal(await inked(page, 'cpu', 1 - n / 60, 0.5, 1), true, `${n} s ago`);
});

on('raw texts: what the kernel said at the held moment', { path: '' }, async (page) => {
  const moment = server.machine.spike[0];
  await page.goto(`${server.url}?view=raw&at=${moment}&source=proc/loadavg`);
  await has(page, 'pre', `proc/loadavg <b>at</b> ${moment}`);
  await page.locator('.fields button', { hasText: 'proc/meminfo' }).click();
  await has(page, 'pre', `proc/meminfo <b>at</b> ${moment}`);
  assert.equal(parameter(page, 'source'), 'proc/meminfo');
});

on('events: listed, and a click goes there', { path: '?view=events' }, async (page) => {
  await has(page, '.events li', 'the wall clock was set');
  await page.locator('.events button', { hasText: 'nothing was recorded' }).click();
  await until(page, () => !document.getElementById('view-now').hidden && new URLSearchParams(location.search).has('thru'));
  const [from, thru] = await range(page);
  assert.ok(from < server.machine.gap[0] && thru > server.machine.gap[1]);
});

/** Whether a chart has ink of a strong colour in the column of a moment. */
const inked = (page, panel, time, low = 0, high = 1) => page.evaluate(([name, part, top, bottom]) => {
  const over = document.querySelector(`.card[data-panel=${name}] .u-over`), canvas = document.querySelector(`.card[data-panel=${name}] canvas`);
  const frame = canvas.getBoundingClientRect(), box = over.getBoundingClientRect(), ratio = canvas.width / frame.width;
  const x = Math.round((box.left - frame.left + part * box.width) * ratio), y = (box.top - frame.top) * ratio, height = box.height * ratio;
  const { data } = canvas.getContext('2d').getImageData(x, Math.round(y + top * height), 1, Math.max(1, Math.round((bottom - top) * height)));
  for (let n = 0; n < data.length; n += 4) if (data[n + 3] > 40 && Math.max(data[n], data[n + 1], data[n + 2]) - Math.min(data[n], data[n + 1], data[n + 2]) > 40) return true;
  return false;
}, [panel, time, low, high]);

on('a gap is a gap: nothing is drawn over it', {}, async (page) => {
  const [begin, end] = server.machine.gap;
  await page.goto(`${server.url}?from=${begin - 30}&thru=${end + 30}`);
  await ready(page);
  const part = (time) => (time - (begin - 30)) / (end - begin + 60);
  await until(page, () => document.querySelector('.key b').textContent !== '');
  assert.equal(await inked(page, 'cpu', part(begin - 10)), true);
  assert.equal(await inked(page, 'cpu', part((begin + end) / 2)), false);
  assert.equal(await inked(page, 'kernel', part((begin + end) / 2)), false);
  assert.equal(await inked(page, 'cpu', part(end + 10)), true);
});

on('a spike survives zooming out', { path: '?range=10800' }, async (page) => {
  await ready(page);
  await until(page, () => document.querySelector('.card[data-panel=pressure] .key b').textContent !== '');
  const [from, thru] = await range(page);
  const middle = (server.machine.spike[0] + 12 - from) / (thru - from);
  let found = false;
  for (let step = -6; step <= 6; step++) found ||= await inked(page, 'pressure', middle + step / 1000, 0.02, 0.3);
  assert.ok(found);
  assert.equal(await inked(page, 'pressure', middle - 0.2, 0.02, 0.3), false);
});

on('a lost connection is said, and made good', {}, async (page) => {
  const own = await serve();
  try {
    await page.goto(own.url);
    await ready(page);
    own.state.refuse = true;
    own.cut();
    await has(page, '#live', 'no connection since');
    own.state.refuse = false;
    await until(page, () => document.getElementById('live').dataset.state === 'live');
    await until(page, () => !document.querySelector('.note:not([hidden])'));
  } finally {
    await page.goto('about:blank');
    await own.close();
  }
});

on('a table that takes longer than a sample comes all the same', {}, async (page) => {
  await page.route('**/kymo/v1/processes*', async (route) => {
    await new Promise((done) => setTimeout(done, 1700));
    await route.continue().catch(() => {});
  });
  await page.goto(server.url);
  await ready(page);
});

on('an answer that comes too late is not taken', {}, async (page) => {
  let release;
  const held = new Promise((done) => { release = done; });
  await page.route('**/kymo/v1/series*', async (route) => {
    await held;
    await route.fulfill({ status: 503, contentType: 'application/json', body: '{"error":"too late"}' });
  }, { times: 1 });
  await page.goto(server.url);
  await hearsKeys(page);
  await page.keyboard.press('1');
  await ready(page);
  const late = page.waitForResponse((response) => response.url().includes('/series') && response.status() === 503);
  release();
  await late;
  await page.evaluate(() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 50)));
  assert.equal(await page.locator('.note:not([hidden])').count(), 0);
});

on('a file that was opened ends where it ends', {}, async (page) => {
  const own = await serve({ file: true });
  try {
    await page.goto(own.url);
    await ready(page);
    await until(page, () => document.getElementById('live').textContent === 'the end');
    const clock = new Date((own.machine.born - 3600) * 1000).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' });
    await has(page, '#seen', `– ${clock}`);
    await until(page, () => /\d/.test(document.querySelector('.card[data-panel=cpu] .key b').textContent));
    assert.equal(await inked(page, 'cpu', 0.9), true);
  } finally {
    await page.goto('about:blank');
    await own.close();
  }
});

on('where no processes were recorded, no old table is shown', {}, async (page) => {
  await page.goto(server.url + fixed());
  await ready(page);
  await page.route('**/kymo/v1/processes*', (route) => route.fulfill({ status: 404, contentType: 'application/json', body: '{"error":"cannot show processes: none were recorded then"}' }));
  const { x, y } = await at(page, 'cpu', server.machine.spike[0] + 13);
  await page.mouse.click(x, y);
  await has(page, '.processes .note', 'No processes were recorded');
  assert.equal(await page.locator('.processes tbody tr').count(), 0);
});

on('two thousand processes: the first 200 are drawn, all on demand, and sorting is quick', {}, async (page) => {
  const own = await serve({ count: 2000 });
  try {
    await page.goto(own.url);
    await ready(page);
    await has(page, '.more', 'show all 2000 rows');
    assert.equal(await page.locator('.processes tbody tr').count(), 200);
    await page.locator('.more').click();
    await until(page, () => document.querySelectorAll('.processes tbody tr').length === 2000);
    const sorted = () => page.evaluate(() => { const began = performance.now(); document.querySelector('th[data-column=pid] button').click(); return performance.now() - began; });
    let took = Infinity;
    for (let time = 0; time < 5; time++) took = Math.min(took, await sorted());
    assert.ok(took < 1000, `${took} ms`);
  } finally {
    await page.goto('about:blank');
    await own.close();
  }
});

on('dark and light, units and zone are kept', {}, async (page) => {
  await ready(page);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  await page.keyboard.press('t');
  assert.notEqual(await paper(), dark);
  await page.locator('#settings').click();
  await page.locator('dialog select').nth(1).selectOption({ label: 'kB, MB (1000)' });
  await page.locator('dialog select').nth(3).selectOption({ label: 'UTC' });
  await page.keyboard.press('Escape');
  await has(page, '#cost', '11 MB of memory');
  // the scan may be of the hour that has just ended
  const isUtc = () => until(page, () => [0, 60].some((ago) => document.querySelector('.processes h2').textContent.includes(` ${new Date(Date.now() - ago * 1000).toISOString().slice(11, 13)}:`)));
  await isUtc();
  await page.reload();
  await ready(page);
  await has(page, '#cost', '11 MB of memory');
  await isUtc();
});
