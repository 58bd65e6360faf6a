// The page over the real thing: `kymo serve` records this machine. KYMO names the program; without it, and without a
// build in target/, these tests are skipped. KYMO_ARGS is added to its command line (`--assets ../crates/serve/assets`).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, open, ready } from './open.js';

const BUILT = fileURLToPath(new URL('../../target/quick/kymo', import.meta.url));
const program = process.env.KYMO ?? (existsSync(BUILT) ? BUILT : null);
const skip = program ? false : 'no kymo: set KYMO to its path';

let browser, kymo, folder, url;

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'kymo-page-'));
  const port = await freePort();
  url = `http://127.0.0.1:${port}/`;
  kymo = spawn(program, ['serve', '--data', folder, '--listen', `127.0.0.1:${port}`, ...(process.env.KYMO_ARGS?.split(' ') ?? [])], { stdio: ['ignore', 'ignore', 'inherit'] });
  browser = await launch();
  await patience(async () => (await fetch(`${url}api/v1/status`)).ok);
});

after(async () => {
  await browser?.close();
  if (kymo) {
    kymo.kill('SIGTERM');
    await new Promise((done) => kymo.on('exit', done));
  }
  if (folder) rmSync(folder, { recursive: true, force: true });
});

function freePort() {
  return new Promise((done) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });
}

async function patience(condition, length_ms = 30000) {
  for (const end = Date.now() + length_ms; ;) {
    if (await condition().catch(() => false)) return;
    if (Date.now() > end) throw new Error('waited in vain');
    await new Promise((done) => setTimeout(done, 100));
  }
}

const clean = { foreign: [], reports: [], errors: [], dialogs: [] };

test('live graphs and processes of this machine', { skip }, async () => {
  const { page, context, seen } = await open(browser, url);
  await ready(page);
  await page.waitForFunction(() => document.getElementById('live').dataset.state === 'live');
  const old = await page.locator('#seen').textContent();
  await page.waitForFunction((before) => document.getElementById('seen').textContent !== before, old);
  await page.waitForFunction(() => /kymo costs .* of a CPU, .* of memory/.test(document.getElementById('cost').textContent) && /reaches back to/.test(document.getElementById('cost').textContent));
  await page.waitForFunction(() => document.querySelector('.card[data-panel=cpu] .key b').textContent.includes('%'));
  assert.deepEqual(seen, clean);
  await context.close();
});

test('the process behind a spike that is over is found by moving the cursor to it', { skip, timeout: 120000 }, async () => {
  const { page, context, seen } = await open(browser, url);
  await ready(page);
  const busy = spawn(process.execPath, ['-e', 'for(;;);'], { stdio: 'ignore' });
  const shown = (wanted, timeout) => page.waitForFunction(([pid, want]) => [...document.querySelectorAll('.processes tbody tr')].slice(0, 10).some((row) => row.cells[1].textContent === pid) === want, [String(busy.pid), wanted], { timeout });
  const stamp = () => page.locator('.processes h2').textContent();
  await shown(true, 60000);
  await page.waitForFunction((old) => document.querySelector('.processes h2').textContent !== old, await stamp(), { timeout: 30000 });
  busy.kill('SIGKILL');
  const moment = Date.now() / 1000 - 4;
  await shown(false, 60000);
  const box = await page.locator('.card[data-panel=cpu] .u-over').boundingBox();
  await page.keyboard.press('1');
  for (let found = false; !found;) {
    const ago = Date.now() / 1000 - moment;
    await page.mouse.move(box.x + box.width * (1 - ago / 60), box.y + 20);
    found = await shown(true, 2000).then(() => true, () => false);
    assert.ok(ago < 50, 'the cursor found it while it was in sight');
  }
  assert.deepEqual(seen, clean);
  await context.close();
});

test('command lines come with the token, and not without', { skip }, async () => {
  const { page, context, seen } = await open(browser, url);
  await ready(page);
  assert.equal(await page.locator('.processes th[data-column=command]').count(), 0);
  await page.locator('#lock').click();
  await page.locator('dialog input').fill(readFileSync(join(folder, 'token'), 'utf8').trim());
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.processes th[data-column=command]'));
  await page.waitForFunction(() => [...document.querySelectorAll('.processes td.wide')].some((cell) => cell.textContent.includes('serve')));
  assert.deepEqual(seen, clean);
  await context.close();
});

/** Says lines to the daemon that keeps what others send. */
function send(lines) {
  return new Promise((done, failed) => {
    const socket = connect(join(folder, 'rrdcached.sock'));
    let answers = '';
    socket.on('error', failed);
    socket.on('close', () => done(answers));
    socket.on('data', (data) => { answers += data; });
    socket.end(`${lines.join('\n')}\nQUIT\n`);
  });
}

test('what others send is found, drawn beside this machine, and who fell silent comes first', { skip }, async () => {
  const now = Math.floor(Date.now() / 10000) * 10;
  const lines = [];
  for (const [host, until] of [['web1', now], ['<b>web2', now - 300]]) {
    for (const state of ['idle', 'user']) {
      const name = `${host}/cpu-0/cpu-${state}.rrd`;
      lines.push(`CREATE ${name} -s 10 -b ${now - 1000} DS:value:GAUGE:20:U:U RRA:AVERAGE:0.5:1:200`);
      for (let time = now - 600; time <= until; time += 10) lines.push(`UPDATE ${name} ${time}:${state === 'idle' ? 90 : 10}`);
    }
  }
  const answers = await send(lines);
  assert.doesNotMatch(answers, /^-/m);
  const { page, context, seen } = await open(browser, url, { path: '?view=hosts' });
  await page.waitForFunction(() => document.querySelectorAll('.hosts tbody tr').length === 2);
  const rows = await page.locator('.hosts tbody tr').allTextContents();
  assert.match(rows[0], /^<b>web2silent: .* ago2/);
  assert.match(rows[1], /^web1.* ago2/);
  await page.locator('.hosts button', { hasText: 'web1' }).click();
  await page.waitForFunction(() => [...document.querySelectorAll('#view-series .key b')].map((value) => value.textContent).join() === '90,10');
  assert.equal(await page.locator('#view-series .card h3').first().textContent(), 'web1 cpu-0 cpu');
  assert.match(page.url(), /view=series&host=web1/);
  await page.locator('#view-series input[type=search]').fill('web2 user');
  await page.locator('#view-series .fields button', { hasText: 'cpu-user' }).click();
  await page.waitForFunction(() => document.querySelector('#view-series .card h3')?.textContent === '<b>web2 cpu-0 cpu-user');
  // a field of this machine joins it
  const here = new URL(page.url());
  here.searchParams.set('fields', `${here.searchParams.get('fields')}~cpu.user`);
  await page.goto(here.href);
  await page.waitForFunction(() => document.querySelectorAll('#view-series .key').length === 2);
  await page.waitForFunction(() => /%/.test([...document.querySelectorAll('#view-series .key b')].at(-1).textContent));
  assert.deepEqual(seen, clean);
  await context.close();
});

test('all fields, raw texts and events of this machine', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { path: '?view=fields&q=load' });
  await page.waitForFunction(() => document.querySelectorAll('.fields li').length > 2);
  await page.locator('#view-fields .fields button', { hasText: 'cpu.load1' }).first().click();
  await page.waitForFunction(() => /\d/.test(document.querySelector('#view-fields .key b')?.textContent));
  await page.goto(`${url}?view=raw&source=proc/loadavg`);
  await page.waitForFunction(() => /^\d+\.\d\d \d+\.\d\d \d+\.\d\d \d+\/\d+ \d+/.test(document.querySelector('pre')?.textContent));
  await page.goto(`${url}?view=events`);
  await page.waitForFunction(() => document.querySelectorAll('.events li').length > 0);
  assert.deepEqual(seen, clean);
  await context.close();
});
