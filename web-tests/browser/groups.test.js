// Control groups and NFS mounts of a made-up machine whose names are hostile: `kymo record` reads its files, which a timer moves on,
// and `kymo serve` reads along. KYMO names the program; without one these tests are skipped.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, patience } from '../fixture/peers.js';
import { launch, open } from './open.js';

const BUILT = fileURLToPath(new URL('../../target/quick/kymo', import.meta.url));
const program = process.env.KYMO ?? (existsSync(BUILT) ? BUILT : null);
const skip = program ? false : 'no kymo: set KYMO to its path';

const HOSTILE = '<img src=x onerror=alert(1)>.scope';
// CPU of each in milliseconds a second. A sample in the middle of a moment sees 20 % more of one and less of another: the numbers
// are so far apart that their order stays
const GROUPS = [['', 2000], ['/system.slice', 1200], ['/system.slice/web.service', 500], ['/system.slice/db.service', 300], [`/user.slice/${HOSTILE}`, 100], ['/idle.slice', 0]];
const clean = { foreign: [], reports: [], errors: [], dialogs: [] };

let browser, folder, url, timer;
const ended = [];

function put(path, text) {
  const at = join(folder, 'root', path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(`${at}.new`, `${text}\n`);
  renameSync(`${at}.new`, at);
}

/** The kernel's texts of the groups and of an NFS mount, so many seconds after the start. */
function putMoment(seconds) {
  for (const [group, part] of GROUPS) {
    const file = (name, text) => put(`sys/fs/cgroup${group}/${name}`, text);
    const used = Math.round(seconds * part * 1000);
    file('cpu.stat', `usage_usec ${used}\nuser_usec ${used}\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0`);
    file('memory.current', String((part + 1) * 2 ** 20));
    file('memory.stat', `anon ${part * 2 ** 20}\nfile 4096`);
    file('io.stat', `8:0 rbytes=${used} wbytes=${used * 2} rios=1 wios=1 dbytes=0 dios=0`);
    for (const resource of ['cpu', 'memory', 'io']) file(`${resource}.pressure`, `some avg10=0.00 avg60=0.00 avg300=0.00 total=${used}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0`);
    file('pids.current', String(part / 100 + 1));
  }
  const n = Math.round(seconds * 100);
  put('proc/1/mountstats', `device 10.0.0.1:/export mounted on /mnt/<b>nfs with fstype nfs4 statvers=1.1\n\tage:\t77\n\tbytes:\t1 2 3 4 5 6 7 8\n\txprt:\ttcp 875 1 2 0 6 7 7 0 7 0 2 0 0\n\tper-op statistics\n\t        READ: ${n} ${n} 0 ${n * 1024} ${n * 1024} 0 ${n * 4} ${n * 6} 0\n\t       WRITE: ${n} ${n} 0 ${n * 2048} ${n * 2048} 0 ${n * 4} ${n * 6} 0`);
}

function start(...words) {
  const child = spawn(program, words, { stdio: 'ignore', env: { ...process.env, KYMO_DIR: join(folder, 'pub') } });
  ended.push(() => new Promise((done) => (child.on('exit', done), child.kill('SIGTERM'))));
}

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'kymo-groups-'));
  put('proc/stat', 'cpu  1 2 3 4\ncpu0 1 2 3 4');
  const mounts = '31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n32 23 0:29 / /mnt/<b>nfs rw - nfs4 10.0.0.1:/export rw,addr=10.0.0.1';
  put('proc/self/mountinfo', mounts);
  put('proc/1/mountinfo', mounts);
  const began = Date.now();
  putMoment(1);
  timer = setInterval(() => putMoment(1 + (Date.now() - began) / 1000), 100);
  const data = join(folder, 'data');
  start('record', '-scgGV', '-i', '.5:.5', '-f', data, '--root', join(folder, 'root'));
  // who comes first records
  await patience(async () => existsSync(data) && execFileSync(program, ['dump', data], { stdio: ['ignore', 'pipe', 'ignore'] }).length > 0);
  url = `http://127.0.0.1:${await freePort()}/`;
  start('serve', '--data', data, '--listen', url.slice(7, -1), ...(process.env.KYMO_ARGS?.split(' ') ?? []));
  browser = await launch();
  const recorded = async () => {
    const { subsystems } = await (await fetch(`${url}kymo/v1/fields`)).json();
    return ['cgroups', 'nfs_mounts'].every((name) => subsystems.some((each) => each.name === name && each.recorded));
  };
  await patience(recorded);
});

after(async () => {
  await browser?.close();
  for (const end of ended.reverse()) await end();
  clearInterval(timer);
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const legendHas = (page, panel, wanted) =>
  page.waitForFunction(([id, text]) => new RegExp(text).test(document.querySelector(`.card[data-panel=${id}] .legend`)?.textContent ?? ''), [panel, wanted]);
const rows = (page) => page.locator('.panel.groups tbody tr').evaluateAll((all) => all.map((row) => row.cells[0].textContent));
const drawn = (page) => page.locator('.card[data-panel=groupmemory] .legend .key span').allTextContents();

/** Waits until what `read` finds is `wanted`: a sample may be late, or see one group later than another. */
async function comesToBe(page, read, wanted) {
  const isSo = async () => JSON.stringify(await read(page)) === JSON.stringify(wanted);
  await patience(isSo).catch(() => {});
  assert.deepEqual(await read(page), wanted);
}

async function unlock(page) {
  await page.locator('#lock').click();
  await page.locator('dialog input').fill(readFileSync(join(folder, 'data/token'), 'utf8').trim());
  await page.locator('dialog input').press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.panel.groups tbody tr').length > 3);
}

test('without a token there are the sums of groups and no name', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { height: 2000 });
  await legendHas(page, 'groupcpu', 'all[\\d.]+ %');
  await legendHas(page, 'grouptasks', 'all\\d');
  assert.match(await page.locator('.panel.groups .note').textContent(), /token/);
  assert.deepEqual(await rows(page), []);
  const content = await page.content();
  for (const name of ['web.service', 'user.slice', 'onerror']) assert.ok(!content.includes(name), name);
  assert.deepEqual(seen, clean);
  await context.close();
});

test('NFS mounts have cards of operations, bytes and times', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { height: 2000 });
  await legendHas(page, 'nfsmountoperations', '/mnt/<b>nfs[\\d.]+ 1?/?s');
  await legendHas(page, 'nfsmountbytes', '/mnt/<b>nfs read[\\d.,]+ [KM]iB/s/mnt/<b>nfs written[\\d.,]+ [KM]iB/s');
  await legendHas(page, 'nfsmounttimes', '/mnt/<b>nfs on the way4 ms/mnt/<b>nfs in all6 ms');
  assert.deepEqual(seen, clean);
  await context.close();
});

test('with the token the groups that use most are drawn, else those that are chosen in the tree or the list', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { height: 2000 });
  await legendHas(page, 'groupcpu', 'all');
  await unlock(page);
  // by CPU, each below the one it lies in; the one above the hostile name has no row of its own
  const tree = ['/', 'system.slice', 'web.service', 'db.service', `user.slice/${HOSTILE}`, 'idle.slice'];
  await comesToBe(page, rows, tree);
  const most = ['web.service', 'db.service', HOSTILE, 'idle.slice'];
  await page.waitForFunction((names) => names.every((name) => document.querySelector('.card[data-panel=groupmemory] .legend').textContent.includes(name)), most);
  await comesToBe(page, drawn, most);
  await legendHas(page, 'groupmemory', 'web\\.service501 MiBdb\\.service301 MiB');
  await legendHas(page, 'groupio', 'web\\.service read[\\d.]+ [kKM]i?B/s');
  // one that is chosen is drawn alone; another one more by the keyboard
  const choose = (name) => page.locator('.panel.groups tbody tr', { hasText: name });
  await choose('system.slice').first().click();
  await page.waitForFunction(() => document.querySelector('.card[data-panel=groupmemory] .legend').textContent.startsWith('system.slice'));
  await comesToBe(page, drawn, ['system.slice']);
  await choose('onerror').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.card[data-panel=groupmemory] .key').length === 2);
  await comesToBe(page, drawn, ['system.slice', HOSTILE]);
  assert.match(new URL(page.url()).searchParams.get('groups'), /^\/system\.slice~\/user\.slice\/<img/);
  await page.locator('.panel.groups select').selectOption('list');
  const list = ['/', '/system.slice', '/system.slice/web.service', '/system.slice/db.service', `/user.slice/${HOSTILE}`, '/idle.slice'];
  await comesToBe(page, rows, list);
  // the address shows the same to who comes with it
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('.card[data-panel=groupmemory] .key').length === 2);
  await comesToBe(page, drawn, ['system.slice', HOSTILE]);
  await page.locator('.panel.groups input').fill('DB.');
  await comesToBe(page, rows, ['/system.slice/db.service']);
  await page.locator('.panel.groups button', { hasText: 'use most' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.card[data-panel=groupmemory] .key').length === 4);
  assert.deepEqual(seen, clean);
  await context.close();
});
