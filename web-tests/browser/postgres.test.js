// The view of PostgreSQL, of a server with the library that is asked by SQL as well, under pgbench: who holds up whom, kinds of
// commands, charts; the same at the cursor; and no text without a token.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, patience, postgres, running } from '../fixture/peers.js';
import { launch, open } from './open.js';

const BUILT = fileURLToPath(new URL('../../target/quick/kymo', import.meta.url));
const program = process.env.KYMO ?? (existsSync(BUILT) ? BUILT : null);
const skip = program ? false : 'no kymo: set KYMO to its path';
/** Where pictures go, if somebody wants them. */
const PICTURES = process.env.PICTURES;

let browser, folder, url, server;
const children = [];
const started = (child) => (children.push(child), child);

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'kymo-postgres-'));
  // PostgreSQL's user goes through it, and whoever asks comes to its socket
  chmodSync(folder, 0o711);
  const published = `/dev/shm/kymo-postgres-${process.pid}`;
  const page = await freePort();
  const socket = join(folder, 'postgres');
  writeFileSync(join(folder, 'kymo.toml'), `[listen]\ncollectd = []\n[postgres.servers.main]\nsocket = "${socket}"\nrole = "postgres"\n`);
  url = `http://127.0.0.1:${page}/`;
  const words = ['serve', '--config', join(folder, 'kymo.toml'), '--data', join(folder, 'kymo-data'), '--listen', `127.0.0.1:${page}`];
  started({ stop: () => rmSync(published, { recursive: true, force: true }) });
  started(running(program, words, { env: { ...process.env, KYMO_DIR: published } }));
  await patience(async () => (await fetch(`${url}kymo/v1/status`)).ok, 'kymo serve');
  server = started(postgres(socket, published));
  await patience(server.isReady, 'PostgreSQL');
  chmodSync(socket, 0o711);
  started(server.bench());
  browser = await launch();
});

after(async () => {
  await browser?.close();
  for (const child of children.reverse()) await child.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const token = () => readFileSync(join(folder, 'kymo-data', 'token'), 'utf8').trim();
const rows = (page, label) =>
  page.$$eval(`[aria-label="${label}"] tbody tr`, (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

/** A lock that others wait for. */
const altering = () => server.psql('BEGIN; ALTER TABLE pgbench_branches ADD COLUMN IF NOT EXISTS note text; SELECT pg_sleep(20);');

test('who holds up whom, now and at the cursor, with kinds of commands and charts', { skip }, async () => {
  await patience(async () => {
    const answer = await (await fetch(`${url}kymo/v1/stored?match=job=postgres`)).json();
    return answer.series.length > 20;
  }, 'series');
  const { page, context, seen } = await open(browser, url, { height: 1700, path: '?view=postgres&range=300' });
  await page.evaluate((token) => localStorage.setItem('kymo.token', token), token());
  await page.reload();
  started(altering());
  await page.waitForFunction(() => document.querySelectorAll('[aria-label="Commands in flight"] tr[data-depth="1"]').length >= 2);
  const flight = await rows(page, 'Commands in flight');
  // a sample a second is recorded
  await page.waitForTimeout(3000);
  const moment = (await (await context.request.get(`${url}kymo/v1/programs`)).json()).now;
  const [root] = flight;
  assert.match(root[3], /pg_sleep|ALTER TABLE/, 'who holds the lock comes first');
  const held = flight.filter((row) => row[5] === root[4]);
  assert.ok(held.length >= 2, JSON.stringify(flight));
  for (const row of held) {
    assert.equal(row[1], 'active');
    assert.equal(row[2], 'Lock:relation');
    assert.match(row[3], /└ .*pgbench_branches/);
    assert.doesNotMatch(row[3], /\d{3}/, 'no literal');
  }
  await page.waitForFunction(() => document.querySelectorAll('#view-postgres .card canvas').length >= 10);
  const names = (await rows(page, 'Kinds of commands')).map(([kind]) => kind);
  for (const kind of ['select', 'insert', 'update', 'utility']) assert.ok(names.includes(kind), names.join());
  assert.equal(await page.isVisible('[data-view=postgres]'), true);
  if (PICTURES) mkdirSync(PICTURES, { recursive: true });
  await page.waitForFunction(() => !document.querySelector('[aria-label="Commands in flight"] tr[data-depth="1"]'));
  await page.goto(`${url}?view=postgres&range=300&at=${moment.toFixed(1)}`);
  await page.waitForFunction(() => document.querySelectorAll('[aria-label="Commands in flight"] tr[data-depth="1"]').length >= 2);
  assert.match(await page.textContent('#view-postgres .sub'), /blocked at /);
  if (PICTURES) await page.waitForTimeout(3000);
  if (PICTURES) await page.screenshot({ path: join(PICTURES, 'postgres-cursor.png'), fullPage: true });
  if (PICTURES) {
    await page.waitForTimeout(35000);
    await page.goto(`${url}?view=postgres&range=300`);
    await page.waitForTimeout(4000);
    await page.screenshot({ path: join(PICTURES, 'postgres-live.png'), fullPage: true });
  }
  assert.deepEqual(seen, { foreign: [], reports: [], errors: [], dialogs: [] });
  await context.close();
});

test('without a token there are numbers and no texts', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { path: '?view=postgres' });
  await page.waitForFunction(() => /in flight/.test(document.querySelector('#view-postgres .sub').textContent));
  const texts = (await rows(page, 'Commands in flight')).map((row) => row[3].replace(/[\u2003└ ]/g, ''));
  for (const text of texts) assert.match(text, /^(\(atokenshowsit\))?$/);
  assert.equal(seen.reports.length, 0);
  await context.close();
});
