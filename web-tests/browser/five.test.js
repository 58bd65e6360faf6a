// All that kymo replaces, at once: this machine is recorded, a device is polled, another machine sends by collectd, a program by
// rrdtool's protocol, and PostgreSQL says what it does. The page shows a graph of each at one cursor.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { cfgmaker, collectd, freePort, patience, postgres, running, snmpd } from '../fixture/peers.js';
import { launch, open } from './open.js';

const BUILT = fileURLToPath(new URL('../../target/quick/kymo', import.meta.url));
const program = process.env.KYMO ?? (existsSync(BUILT) ? BUILT : null);
const skip = program ? false : 'no kymo: set KYMO to its path';
/** Addresses that are no other test's. */
const AGENT = '127.0.31.5';
const SECONDS = 45;

let browser, folder, url, updates;
const children = [];
const started = (child) => (children.push(child), child);

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'kymo-five-'));
  // PostgreSQL's user goes through it
  chmodSync(folder, 0o711);
  const published = `/dev/shm/kymo-five-${process.pid}`;
  const [page, datagrams, agent] = [await freePort(), await freePort(), await freePort(AGENT)];
  updates = await freePort();
  started(snmpd(join(folder, 'snmpd'), `${AGENT}:${agent}`));
  const config = join(folder, 'mrtg.cfg');
  await patience(() => (cfgmaker(config, folder, `${AGENT}:${agent}`), existsSync(config)), 'snmpd');
  const settings = `[listen]\ncollectd = ["127.0.0.1:${datagrams}"]\nrrdcached = ["127.0.0.1:${updates}"]\n[poll]\nmrtg = ["${config}"]\n`;
  writeFileSync(join(folder, 'kymo.toml'), settings);
  url = `http://127.0.0.1:${page}/`;
  const words = ['serve', '--config', join(folder, 'kymo.toml'), '--data', join(folder, 'kymo-data'), '--listen', `127.0.0.1:${page}`];
  started({ stop: () => rmSync(published, { recursive: true, force: true }) });
  started(running(program, words, { env: { ...process.env, KYMO_DIR: published } }));
  await patience(async () => (await fetch(`${url}kymo/v1/status`)).ok, 'kymo serve');
  started(collectd(join(folder, 'collectd'), 'web1', datagrams));
  const server = started(postgres(join(folder, 'postgres'), published));
  await patience(server.isReady, 'PostgreSQL');
  started(server.bench());
  browser = await launch();
});

after(async () => {
  await browser?.close();
  for (const child of children.reverse()) await child.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** As a script of an administrator does it. */
const rrdtool = (...words) => execFileSync('rrdtool', [...words, '--daemon', `127.0.0.1:${updates}`], { encoding: 'utf8' });

test('this machine, a device, collectd, rrdtool and PostgreSQL at one cursor', { skip }, async () => {
  rrdtool('create', 'sensors/room.rrd', '--step', '1', 'DS:value:GAUGE:10:U:U', 'RRA:AVERAGE:0.5:1:600');
  let last = 0;
  const update = () => {
    const now = Math.floor(Date.now() / 1000);
    // a second has one value, however late the timer is
    if (now > last) rrdtool('update', 'sensors/room.rrd', `${now}:${20 + Math.sin(now / 5)}`);
    last = now;
  };
  const timer = setInterval(update, 1000);
  try {
    await new Promise((done) => setTimeout(done, SECONDS * 1000));
    await showAll();
  } finally {
    clearInterval(timer);
  }
});

/** The one that the keeper has, whose name says all of it. */
function only(names, ...words) {
  const found = names.filter((name) => words.every((word) => name.includes(word)));
  assert.ok(found.length > 0, `${words.join(' ')} in ${names.join('\n')}`);
  return found[0];
}

async function showAll() {
  const token = readFileSync(join(folder, 'kymo-data', 'token'), 'utf8').trim();
  const { series } = await (await fetch(`${url}kymo/v1/stored`, { headers: { Authorization: `Bearer ${token}` } })).json();
  const names = series.map(([name]) => name);
  const charts = [
    'cpu.user',
    `@${only(names, 'mrtg/', '.rrd')}:ds0`,
    `@${only(names, 'web1/load/load')}:shortterm`,
    `@${only(names, 'sensors/room')}:value`,
    `@${only(names, 'commands_total', 'kind="update"', 'postgresql')}:value`,
  ];
  const now = Math.floor(Date.now() / 1000);
  const { page, context, seen } = await open(browser, url);
  // names of series hold the user that publishes: they need the token
  await page.locator('#lock').click();
  await page.locator('dialog input').fill(token);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.querySelector('dialog[open]'));
  const address = new URL(url);
  const escaped = (id) => id.replace(/[%~|]/g, encodeURIComponent);
  for (const [name, value] of Object.entries({ view: 'series', fields: charts.map(escaped).join('|'), from: now - 60, thru: now })) address.searchParams.set(name, value);
  await page.goto(address.href);
  await page.waitForFunction(() => document.querySelectorAll('#view-series .card canvas').length === 5);
  const box = await page.locator('#view-series .u-over').first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 20);
  const values = () => page.evaluate(() => [...document.querySelectorAll('#view-series .key b')].map((value) => value.textContent));
  await patience(async () => (await values()).filter((text) => /^\d/.test(text)).length === 5, `five values: ${await values()}`);
  // each chart draws the cursor where the mouse is in one of them
  const cursors = await page.evaluate(() => [...document.querySelectorAll('#view-series .line.cursor:not([hidden])')].map((line) => Math.round(line.getBoundingClientRect().x - line.parentElement.getBoundingClientRect().x)));
  assert.equal(cursors.length, 5);
  assert.equal(new Set(cursors).size, 1, `${cursors}`);
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true });
  assert.deepEqual(seen, { foreign: [], reports: [], errors: [], dialogs: [] });
  await context.close();
}
