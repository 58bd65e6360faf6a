// A recording of all letters, cut by `kymo export` into one file, and opened with `kymo serve --open`: the page shows the
// part, and a card for each subsystem that has numbers. KYMO names the program; without one these tests are skipped.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, patience } from '../fixture/peers.js';
import { launch, open } from './open.js';

const BUILT = fileURLToPath(new URL('../../target/quick/kymo', import.meta.url));
const program = process.env.KYMO ?? (existsSync(BUILT) ? BUILT : null);
const skip = program ? false : 'no kymo: set KYMO to its path';

let browser, folder;

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'kymo-letters-'));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const clean = { foreign: [], reports: [], errors: [], dialogs: [] };
const run = (...words) => execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });

/** Runs `kymo serve --open` on what is at `path`, and `then` with where it is. */
async function opened(path, then) {
  const url = `http://127.0.0.1:${await freePort()}/`;
  const kymo = spawn(program, ['serve', '--open', path, '--listen', url.slice(7, -1), ...(process.env.KYMO_ARGS?.split(' ') ?? [])],
    { stdio: 'ignore', env: { ...process.env, KYMO_DIR: join(folder, 'pub') } });
  try {
    await patience(async () => (await fetch(`${url}kymo/v1/status`)).ok);
    await then(url);
  } finally {
    kymo.kill('SIGTERM');
    await new Promise((done) => kymo.on('exit', done));
  }
}

const cards = (page) => page.locator('.others .card:visible').evaluateAll((all) => all.map((card) => card.dataset.panel));
const legend = (page, panel) => page.locator(`.card[data-panel=${panel}] .legend`).textContent();

/** `HH:MM:SS` of this machine, as the recorder has it. */
const ofDay = (seconds) => {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, '0');
  return `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}:${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

test('a part of a recording in one file is shown, with a card for each letter', { skip }, async () => {
  const ring = join(folder, 'ring');
  run('record', '-s', 'cdmnjbtyWKM', '-i', '.1:1', '-c', '200', '-f', ring);
  let whole;
  await opened(ring, async (url) => { whole = await (await fetch(`${url}kymo/v1/status`)).json(); });
  const [from, thru] = [Math.ceil(whole.from) + 9, Math.floor(whole.thru) - 3];
  const file = join(folder, 'part.kymo');
  run('export', '--from', ofDay(from), '--thru', ofDay(thru), ring, file);
  await opened(file, async (url) => {
    const status = await (await fetch(`${url}kymo/v1/status`)).json();
    assert.equal(status.mode, 'file');
    // it begins with a sample that depends on none before it, of which there is one in 60
    assert.ok(status.from > whole.from + 1 && status.from <= from, `${status.from} begins at ${from}, not at ${whole.from}`);
    assert.ok(status.thru > thru - 2 && status.thru <= thru + 1, `${status.thru} ends at ${thru}`);
    const { page, context, seen } = await open(browser, url, { path: `?from=${from}&thru=${thru}`, height: 2000 });
    await page.waitForFunction(() => document.querySelectorAll('.others .card:not([hidden]) canvas').length > 8);
    const found = await cards(page);
    for (const panel of ['tcp', 'interrupts', 'softirqs', 'buddy', 'slabs', 'kymo']) if (panel !== 'slabs' || process.getuid() === 0) assert.ok(found.includes(panel), `${panel} of ${found}`);
    for (const panel of ['temperatures', 'infiniband', 'nfsclient', 'nfsserver']) if (!existsSync('/sys/class/hwmon')) assert.ok(!found.includes(panel), panel);
    // the eleven usual ones stand before them
    assert.equal(await page.locator('.charts:not(.others) .card').count(), 11);
    // units, and the numbers of the cursor
    assert.match(await legend(page, 'kymo'), /CPU[\d.]+ %memory[\d.]+ MiB/);
    assert.match(await legend(page, 'filesystems'), /[\d.]+ %/);
    assert.match(await legend(page, 'buddy'), /all of it[\d.]+ [MG]iB/);
    const before = await legend(page, 'softirqs');
    const box = await page.locator('.card[data-panel=interrupts] .u-over').boundingBox();
    const parts = [0.35, 0.5, 0.65, 0.8];
    await patience(async () => {
      parts.push(parts.shift());
      await page.mouse.move(box.x + box.width * parts[0], box.y + box.height / 2);
      return (await legend(page, 'softirqs')) !== before;
    }, 'the numbers of the cursor');
    await page.locator('.card[data-panel=interrupts] .split').click();
    // now a line for each CPU
    const split = () => {
      const { textContent, children } = document.querySelector('.card[data-panel=interrupts] .legend');
      return children.length > 0 && !textContent.includes('all CPUs') && /\d/.test(textContent);
    };
    await page.waitForFunction(split);
    assert.deepEqual(seen, clean);
    await context.close();
  });
});

test('chips, zones, clocks and ports have cards with their units', { skip }, async () => {
  const root = join(folder, 'root');
  const put = (path, text) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  };
  put('proc/stat', 'cpu  1 2 3 4\ncpu0 1 2 3 4');
  put('sys/class/hwmon/hwmon0/name', '<b>coretemp');
  put('sys/class/hwmon/hwmon0/temp1_input', '45000');
  put('sys/class/hwmon/hwmon0/fan1_input', '1200');
  put('sys/class/hwmon/hwmon0/power1_input', '35500000');
  put('sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq', '2100000');
  put('sys/class/infiniband/mlx4_0/ports/1/counters/port_rcv_data', '7');
  put('sys/class/infiniband/mlx4_0/ports/1/counters/port_xmit_data', '8');
  put('proc/self/net/rpc/nfs', 'rpc 10 0 10\nproc3 22 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22');
  const ring = join(folder, 'chips');
  run('record', '-s', 'cExfK', '-i', '.5:1', '-c', '12', '-f', ring, '--root', root);
  await opened(ring, async (url) => {
    const { page, context, seen } = await open(browser, url, { path: '?range=all' });
    await page.waitForFunction(() => document.querySelectorAll('.others .card:not([hidden]) canvas').length > 4);
    assert.deepEqual(await cards(page), ['nfsclient', 'infiniband', 'temperatures', 'fans', 'power', 'clocks']);
    for (const [panel, expect] of [['temperatures', '0/temp145 °C'], ['fans', '0/fan11,200 rpm'], ['power', '0/power135.5 W'], ['clocks', '0/frequency2,100 MHz'], ['infiniband', 'received0 B/ssent0 B/s']])
      assert.equal(await legend(page, panel), expect);
    assert.deepEqual(seen, clean);
    await context.close();
  });
});
