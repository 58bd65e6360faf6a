// The page over the real thing.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, isIP } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { skip, startKymo } from '../fixture/kymo.js';
import { freePort, patience } from '../fixture/peers.js';
import { launch, open, ready } from './open.js';

let browser, kymo, folder, url, datagrams, published;

before(async () => {
  if (skip) return;
  datagrams = await freePort();
  kymo = await startKymo(`[listen]\ncollectd = ["127.0.0.1:${datagrams}"]\n[collectd]\ntrusted = ["127.0.0.0/8"]\n`);
  ({ folder, url, published } = kymo);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await kymo?.end();
});

const clean = { foreign: [], reports: [], errors: [], dialogs: [] };

test('live graphs and processes of this machine', { skip }, async () => {
  const { page, context, seen } = await open(browser, url);
  await ready(page);
  await page.waitForFunction(() => document.getElementById('live').dataset.state === 'live');
  const old = await page.locator('#seen').textContent();
  await page.waitForFunction((before) => document.getElementById('seen').textContent !== before, old);
  await page.waitForFunction(() => /kymo costs .* of a CPU, .* of memory/.test(document.getElementById('cost').textContent) && /reaches back to/.test(document.getElementById('cost').textContent));
  await page.waitForFunction(() => document.querySelector('.card[data-panel=cpu] .key b').textContent.includes('%'));
  // what is not recorded unless it is asked for says how
  await page.waitForFunction(() => /^\[record\]\nsubsystems = "\+\w+"$/.test(document.querySelector('.unrecorded pre')?.textContent));
  assert.deepEqual(seen, clean);
  await context.close();
});

test('the lines of the empty tab Programs fetch and compile what they name', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { path: '?view=programs' });
  await page.waitForSelector('#view-programs .copied pre');
  const [fetched, compiled, started] = (await page.locator('#view-programs .copied pre').first().textContent()).split('\n');
  assert.ok(fetched.includes(`${url}kymo.h`) && started.includes('./publish'), fetched);
  const made = join(folder, 'fetched');
  mkdirSync(made);
  for (const line of [fetched, compiled]) execFileSync('bash', ['-c', line], { cwd: made });
  assert.ok(existsSync(join(made, 'publish')));
  assert.equal(readFileSync(join(made, 'kymo.h'), 'utf8'), readFileSync(fileURLToPath(new URL('../../include/kymo.h', import.meta.url)), 'utf8'));
  const { address } = await (await fetch(`${url}kymo/v1/status`)).json();
  assert.ok(address === null || isIP(address), address);
  assert.deepEqual(seen, clean);
  await context.close();
});

test('the process behind a spike that is over is found by moving the cursor to it', { skip }, async (t) => {
  const { page, context, seen } = await open(browser, url);
  await ready(page);
  const busy = spawn(process.execPath, ['-e', 'for(;;);'], { stdio: 'ignore' });
  t.after(() => busy.kill('SIGKILL'));
  const shown = (wanted) => page.waitForFunction(([pid, want]) => [...document.querySelectorAll('.processes tbody tr')].slice(0, 10).some((row) => row.cells[1].textContent === pid) === want, [String(busy.pid), wanted]);
  const stamp = () => page.locator('.processes h2').textContent();
  await shown(true);
  await page.waitForFunction((old) => document.querySelector('.processes h2').textContent !== old, await stamp());
  busy.kill('SIGKILL');
  const moment = Date.now() / 1000 - 4;
  await shown(false);
  // a minute that ends with the spike: it stays where it is however long this takes
  const [from, thru] = [moment - 50, moment + 10];
  await page.goto(`${url}?from=${from}&thru=${thru}`);
  await ready(page);
  const box = await page.locator('.card[data-panel=cpu] .u-over').boundingBox();
  await page.mouse.move(box.x + (box.width * (moment - from)) / (thru - from), box.y + 20);
  await shown(true);
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

/** Has the keeper keep what happened to devices, [seconds, severity, device, message] each, as docs/formats/keeper.md has it. */
function notify(...events) {
  const number = (bytes, value) => {
    const buffer = Buffer.alloc(bytes);
    if (bytes === 8) buffer.writeBigInt64LE(value);
    else buffer.writeUIntLE(value, 0, bytes);
    return buffer;
  };
  const text = (value) => Buffer.concat([number(2, Buffer.byteLength(value)), Buffer.from(value)]);
  const bytes = ([seconds, severity, device, message]) =>
    [number(8, BigInt(seconds) * 1000000000n), number(1, severity), ...[device, 'poll', '', '', '', message].map(text)];
  const body = Buffer.concat([Buffer.from([4, 10]), number(2, events.length), ...events.flatMap(bytes)]);
  return new Promise((done, failed) => {
    const socket = connect(join(folder, 'keeper-write.sock'));
    socket.on('error', failed);
    socket.on('data', (answer) => {
      socket.destroy();
      done(answer);
    });
    socket.write(Buffer.concat([number(4, body.length), body]));
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
  await page.waitForFunction(() => [...document.querySelectorAll('#view-series .key b')].map((value) => value.textContent).join() === '10 %');
  assert.equal(await page.locator('#view-series .card h3').first().textContent(), 'CPUof all CPUs');
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

test('targets of the poller: lists, graphs and texts that are hostile', { skip }, async () => {
  const hostile = '<img src=x onerror=alert(1)>';
  const now = Math.floor(Date.now() / 300000) * 300;
  const lines = [];
  for (const name of ['sw1_1', 'sw2_1']) {
    const archives = ['AVERAGE', 'MAX'].flatMap((cf) => [1, 6, 24, 288].map((steps) => `RRA:${cf}:0.5:${steps}:800`)).join(' ');
    lines.push(`CREATE polled/a/${name}.rrd -s 300 -b ${now - 200000} DS:ds0:GAUGE:600:0:U DS:ds1:GAUGE:600:0:U ${archives}`);
    for (let time = now - 199800; time <= (name === 'sw1_1' ? now : now - 6000); time += 300) lines.push(`UPDATE polled/a/${name}.rrd ${time}:500000:250000`);
  }
  assert.doesNotMatch(await send(lines), /^-/m);
  const target = (name, device, more) => JSON.stringify({ name, series: `polled/a/${name}.rrd`, device, max_bytes: [1250000, 1250000], ...more });
  const described = [
    JSON.stringify({ kymo_targets: 1, config: 'a.cfg', interval: 300, targets: 2 }),
    target('sw1_1', 'sw1', { title: `${hostile} uplink`, page_top: `System: ${hostile}\n<script>alert(2)</script>`, options: ['bits'], legend_i: hostile }),
    target('sw2_1', `sw2${hostile}`, { title: 'dead' }),
  ];
  mkdirSync(join(folder, 'poll'), { recursive: true });
  writeFileSync(join(folder, 'poll', 'a.targets'), `${described.join('\n')}\n`);
  const done = await notify([now - 3600, 1, 'sw1', `does not answer ${hostile}`], [now - 60, 4, 'sw2', 'answers again']);
  assert.deepEqual([...done], [2, 0, 0, 0, 4, 0x85]);
  const { page, context, seen } = await open(browser, url, { path: '?view=targets' });
  await page.waitForFunction(() => document.querySelectorAll('.targets tbody tr').length === 4 && /as of/.test(document.querySelector('#view-targets .sub').textContent));
  const rows = await page.locator('.targets tbody tr').allTextContents();
  // the device that is dead comes first
  assert.equal(rows[0], `sw2${hostile}dead · 1 target–––10 of 10`);
  assert.equal(rows[3], `sw1_1${hostile} uplink4000.0 kb/s2000.0 kb/s40.0 %·`);
  await page.locator('#view-targets input').fill('uplink');
  await page.waitForFunction(() => document.querySelectorAll('.targets tbody tr').length === 2 && location.search.includes('q=uplink'));
  await page.locator('.targets button', { hasText: 'sw1_1' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.targetpage canvas').length === 4);
  assert.match(page.url(), /target=a%2Fsw1_1/);
  assert.equal(await page.locator('.targetpage h2').textContent(), `${hostile} uplink`);
  assert.equal(await page.locator('.pagetop').textContent(), `System: ${hostile}\n<script>alert(2)</script>`);
  assert.equal(await page.locator('.targetpage img, .targetpage script').count(), 0);
  const day = page.locator('.targetpage .card[data-period=day]');
  assert.deepEqual(await day.locator('tbody tr').allTextContents(), [`${hostile}4000.0 kb/s (40.0 %)4000.0 kb/s (40.0 %)4000.0 kb/s (40.0 %)`, 'Out2000.0 kb/s (20.0 %)2000.0 kb/s (20.0 %)2000.0 kb/s (20.0 %)']);
  assert.match(await page.locator('.percentile').textContent(), /^95th percentile of \d+ .* since/);
  // the newest is at the left, as in MRTG without growright
  const box = await day.locator('.u-over').boundingBox();
  await page.mouse.move(box.x + 4, box.y + 20);
  await page.waitForFunction(() => /Out 2000.0 kb\/s/.test(document.querySelector('.targetpage .tools').textContent));
  // what happened to the device is said beside its mark, and what happened to others is not
  const says = (text) => page.waitForFunction((wanted) => document.querySelector('.targetpage .tools').textContent.includes(wanted), text);
  const { from: first, thru: last } = (await (await fetch(`${url}kymo/v1/targets/graphs?id=a/sw1_1`)).json()).graphs[0];
  await page.mouse.move(box.x + ((last - (now - 3600)) / (last - first)) * box.width, box.y + 20);
  await says(`failure: sw1: does not answer ${hostile}`);
  await page.mouse.move(box.x + 2, box.y + 20);
  assert.doesNotMatch(await page.locator('.targetpage').textContent(), /answers again/);
  await page.mouse.move(box.x + box.width - 4, box.y + 20);
  // steps that follow each other at once are one for the browser's Back
  await page.waitForTimeout(500);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 60, box.y + 20, { steps: 3 });
  await page.mouse.up();
  await page.waitForFunction(() => location.search.includes('view=series'));
  const [from, thru] = ['from', 'thru'].map((name) => Number(new URL(page.url()).searchParams.get(name)));
  assert.ok(from < thru && from < now - 100000, `${from} ${thru}`);
  await page.goBack();
  await page.waitForFunction(() => !document.getElementById('view-targets').hidden && document.querySelectorAll('.targetpage canvas').length === 4);
  await page.locator('.targetpage > .link').click();
  await page.waitForFunction(() => document.querySelectorAll('.targets tbody tr').length === 2 && !document.querySelector('.targetpage'));
  assert.deepEqual(seen, clean);
  await context.close();
});

/** Sends packets of collectd from an address of its own. */
async function sendPackets(address, packets) {
  const socket = createSocket('udp4');
  await new Promise((done) => socket.bind(0, address, done));
  for (const packet of packets) await new Promise((done) => socket.send(packet, datagrams, '127.0.0.1', done));
  socket.close();
}

const part = (kind, body) => Buffer.concat([Buffer.from([kind >> 8, kind & 255, (body.length + 4) >> 8, (body.length + 4) & 255]), body]);
const textPart = (kind, text) => part(kind, Buffer.from(`${text}\0`));
function numberPart(kind, number) {
  const body = Buffer.alloc(8);
  body.writeBigUInt64BE(BigInt(number));
  return part(kind, body);
}
const GAUGE = Buffer.from('0006000f000101000000000000e03f', 'hex');
const packet = (host, time, ...more) => Buffer.concat([textPart(0, host), numberPart(1, time), numberPart(7, 10), textPart(2, 'load'), textPart(4, 'gauge'), ...more]);
const valuePacket = (host, time) => packet(host, time, GAUGE);
const notification = (host, time, severity, message) => packet(host, time, numberPart(0x101, severity), textPart(0x100, message));

test('whose clock is wrong, what was not taken and what was notified, as text', { skip }, async () => {
  const hostile = '<img src=x onerror=alert(1)>\u001b[2J';
  const now = Math.floor(Date.now() / 1000);
  await sendPackets('127.0.0.2', [valuePacket('<i>late', now - 3600), valuePacket('<i>late', now - 3600), Buffer.from('rubbish')]);
  await sendPackets('127.0.0.3', [valuePacket('right', now - 20), valuePacket('right', now - 10), valuePacket('right', now), notification('right', now - 120, 1, hostile)]);
  const { page, context, seen } = await open(browser, url, { path: '?view=hosts' });
  const cells = (host) => page.evaluate((wanted) => [...document.querySelectorAll('.hosts tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)).find(([name]) => name === wanted), host);
  // The page asks for series and for senders at once: either answer may be from before the last datagram.
  const shown = async () => {
    await page.reload();
    await page.waitForSelector('.hosts tbody tr');
    const [late, right] = [await cells('<i>late'), await cells('right')];
    return [late?.[2], late?.[4], late?.[5], right?.[2], right?.[4], right?.[5]];
  };
  const wanted = ['1', '2', '1 h behind', '1', '0', ''];
  let found;
  await patience(async () => isDeepStrictEqual((found = await shown()), wanted)).catch(() => assert.deepEqual(found, wanted));
  assert.equal(await page.locator('.sockets').textContent(), `127.0.0.1:${datagrams}: 0 datagrams lost in the kernel`);
  // the clock that is furthest off comes first
  await page.locator('.hosts th button', { hasText: 'clock offset' }).click();
  assert.equal(await page.locator('.hosts tbody tr').first().locator('td').first().textContent(), '<i>late');
  assert.equal(await page.locator('.hosts th[aria-sort=descending]').textContent(), 'clock offset');

  // on the graphs of its host the cursor says it, on those of the other host not; a range of the past is asked for once
  await patience(async () => (await (await fetch(`${url}kymo/v1/events?from=${now - 600}`)).text()).includes('right/load/gauge'), 'the notification');
  const range = `from=${now - 600}&thru=${now}`;
  await page.goto(`${url}?view=series&fields=@right/load/gauge.rrd:value&${range}`);
  await page.waitForFunction(() => document.querySelector('#view-series .card canvas'));
  const box = await page.locator('#view-series .u-over').boundingBox();
  await patience(async () => {
    await page.mouse.move(box.x + box.width * 0.8 - 1 + Math.random() * 2, box.y + 20);
    return page.locator('#view-series .moment').isVisible();
  });
  assert.equal(await page.locator('#view-series .moment').textContent(), 'failure: right/load/gauge: <img src=x onerror=alert(1)>\\x1b[2J');
  await page.goto(`${url}?view=series&fields=@${encodeURIComponent('<i>late')}/load/gauge.rrd:value&${range}&at=${now - 120}`);
  await page.waitForFunction(() => document.querySelector('#view-series .card canvas'));
  assert.equal(await page.locator('#view-series .moment').isVisible(), false);

  // among all events; a click shows its host
  await page.goto(`${url}?view=events`);
  await page.locator('.events button', { hasText: 'right/load/gauge' }).click();
  await page.waitForFunction(() => /host=right/.test(location.search));
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(seen, clean);
  await context.close();
});

test('a program that publishes is shown with what it counts, also when it has ended', { skip }, async (t) => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const made = join(folder, 'publish');
  execFileSync('cc', ['-std=c11', '-O2', '-I', join(root, 'include'), join(root, 'crates/shm/examples/publish.c'), '-o', made]);
  const running = spawn(made, ['1000'], { stdio: ['pipe', 'ignore', 'inherit'], env: { ...process.env, KYMO_DIR: published } });
  // a child that lives on after a failure would keep this whole file of tests from ending
  t.after(() => running.kill('SIGKILL'));
  const { page, context, seen } = await open(browser, url, { path: '?view=programs' });
  await page.waitForSelector('.program tbody tr');
  const rows = await page.locator('.program[data-life=alive] tbody tr').allTextContents();
  assert.match(rows[0], /^commands_total kind=read750/);
  assert.match(await page.locator('.program').first().textContent(), /^examplepid \d+, alive, for .*1 of 1 idle/);
  await page.locator('#view-programs input[type=search]').fill('nothing of this name');
  await page.waitForFunction(() => !document.querySelector('.program'));
  await page.locator('#view-programs input[type=search]').fill('example');
  running.kill('SIGKILL');
  await page.waitForSelector('.program[data-life=retired]');
  assert.match(await page.locator('.program[data-life=retired]').textContent(), /all that have ended.*kind=write250/);
  assert.deepEqual(seen, clean);
  await context.close();
});

/** A program whose slot executes each line of its input as SQL until the next one comes; an empty line ends the command. */
const SAYS = `#include "kymo.h"
int main(void) {
    static kymo_publisher publisher;
    static kymo_slot slot;
    static char line[256];
    kymo_config config = {0};
    config.name = "spoken";
    config.slots = 2;
    if (kymo_open(&publisher, &config) != 0) return 1;
    kymo_slot_take(&publisher, &slot);
    while (fgets(line, sizeof line, stdin))
        if (line[0] == '\\n') kymo_end(&slot);
        else kymo_begin(&slot, KYMO_SQL, line, strlen(line) - 1, 0, 0);
    kymo_close(&publisher);
    return 0;
}
`;

test('what programs did is shown at the moment that is held, and without a token how much it was', { skip }, async (t) => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  writeFileSync(join(folder, 'says.c'), SAYS);
  execFileSync('cc', ['-std=gnu11', '-O2', '-I', join(root, 'include'), join(folder, 'says.c'), '-o', join(folder, 'says')]);
  const running = spawn(join(folder, 'says'), [], { stdio: ['pipe', 'ignore', 'inherit'], env: { ...process.env, KYMO_DIR: published } });
  t.after(() => running.kill('SIGKILL'));
  const recorded = async (texts) => {
    let moment;
    await patience(async () => {
      moment = Math.ceil(Date.now() / 100) / 10;
      const token = readFileSync(join(folder, 'token'), 'utf8').trim();
      const answer = await fetch(`${url}kymo/v1/programs?at=${moment}`, { headers: { Authorization: `Bearer ${token}` } });
      const spoken = answer.ok && (await answer.json()).publishers.find(({ name }) => name === 'spoken');
      return spoken && spoken.slots.map(({ text }) => text).join() === texts;
    }, texts);
    return moment;
  };
  running.stdin.write("SELECT '<b>SEKRET' FROM early\n");
  const early = await recorded('SELECT ? FROM early');
  running.stdin.write('UPDATE late SET a = 1\n');
  const late = await recorded('UPDATE late SET a = ?');
  running.stdin.write('\n');
  await recorded('');

  // the address holds the moment; without a token there are no texts
  const { page, context, seen } = await open(browser, url, { path: `?view=programs&at=${early}` });
  const rows = () => page.locator('.program tbody tr').allTextContents();
  await page.waitForFunction(() => /^Programs at \d\d:\d\d:\d\d/.test(document.querySelector('#view-programs h2')?.textContent));
  await page.waitForFunction(() => /held · .+ · \d+ published, 1 commands in flight/.test(document.querySelector('#view-programs .sub')?.textContent));
  assert.match((await rows()).join(), /active\(a token shows it\)/);
  await page.locator('#lock').click();
  await page.locator('dialog input').fill(readFileSync(join(folder, 'token'), 'utf8').trim());
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.program tbody')?.textContent.includes('SELECT ? FROM early'));
  if (process.env.KYMO_SHOT) await page.screenshot({ path: process.env.KYMO_SHOT });

  // other moments: a later one, one at which nothing was recorded, and now
  const there = (text) => page.waitForFunction((wanted) => document.querySelector('.program tbody')?.textContent.includes(wanted), text);
  await page.goto(`${url}?view=programs&at=${late}`);
  await there('UPDATE late SET a = ?');
  assert.doesNotMatch(await page.locator('#view-programs').textContent(), /SEKRET|early/);
  await page.goto(`${url}?view=programs&at=${(early - 86400).toFixed(1)}`);
  await page.waitForFunction(() => document.querySelector('#view-programs .sub')?.textContent === 'nothing was recorded of programs at this moment');
  assert.equal(await page.locator('.program').count(), 0);
  await page.goto(`${url}?view=programs`);
  await page.waitForFunction(() => [...document.querySelectorAll('.program')].some((each) => /^spoken.*alive.*idle/.test(each.textContent)));
  assert.equal(await page.locator('#view-programs h2').first().textContent(), 'Programs');
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

test('an expression over what is recorded here: graph, table, words, and the place of an error', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { path: `?view=query&range=60&expr=${encodeURIComponent('sum by (mode) (rate(node_cpu_seconds_total[10s]))')}` });
  await page.waitForFunction(() => document.querySelectorAll('#view-query .key').length > 5 && /^\d/.test(document.querySelector('#view-query .key b').textContent));
  await page.locator('#view-query .buttons button', { hasText: 'table' }).click();
  await page.waitForFunction(() => [...document.querySelectorAll('.answers td')].some((cell) => cell.textContent === 'idle'));
  const box = page.locator('#view-query textarea');
  await box.fill('node_load');
  await page.waitForFunction(() => [...document.querySelectorAll('.words .name')].some((word) => word.textContent === 'node_load15'));
  await box.fill('sum(node_load1 1');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#view-query .place')?.textContent === `sum(node_load1 1\n${' '.repeat(15)}^`);
  assert.match(await page.locator('#view-query .note').textContent(), /^cannot read the expression: unexpected number/);
  assert.deepEqual(seen, clean);
  await context.close();
});

test('an expression and a chart on a board, which the data folder keeps', { skip }, async () => {
  const { page, context, seen } = await open(browser, url, { path: '?view=query&range=60&expr=node_load1' });
  await page.evaluate((token) => localStorage.setItem('kymo.token', token), readFileSync(join(folder, 'token'), 'utf8').trim());
  await page.reload();
  await page.locator('#view-query button', { hasText: 'pin' }).click();
  await page.locator('dialog input').fill('This machine');
  await page.locator('dialog .main').click();
  await page.waitForFunction(() => document.querySelector('#view-boards .tile canvas'));
  assert.equal(JSON.parse(readFileSync(join(folder, 'boards', 'this-machine.json'), 'utf8')).charts[0].queries[0].expr, 'node_load1');
  await page.goto(`${url}?range=60`);
  await ready(page);
  await page.locator('.card[data-panel=memory]').hover();
  await page.locator('.card[data-panel=memory] .topin').click();
  await page.waitForFunction(() => document.querySelector('dialog select')?.value === 'this-machine');
  await page.locator('dialog .main').click();
  await page.waitForFunction(() => document.querySelectorAll('#view-boards .tile canvas').length === 2 && [...document.querySelectorAll('#view-boards .key b')].every((value) => /^\d/.test(value.textContent)));
  assert.deepEqual(seen, clean);
  await context.close();
});
