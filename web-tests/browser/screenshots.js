// Pictures for the README, of the real thing where KYMO names it and a recording is served at KYMO_URL, else of the fixture's made-up machine.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serve } from '../fixture/serve.js';
import { launch, open, ready } from './open.js';

const FOLDER = process.env.SHOTS ?? fileURLToPath(new URL('../../docs/screenshots/', import.meta.url));
const own = process.env.KYMO_URL ? null : await serve({ polite: true, lively: true, ...made() });
const url = process.env.KYMO_URL ?? own.url;
const token = process.env.KYMO_TOKEN ?? 'fixture-token';
const spike = Number(process.env.SPIKE ?? own?.machine.spike[0] + 12);
const browser = await launch();
const only = process.argv.slice(2);

/** Hosts and programs that send values to the made-up machine. */
function made() {
  const now = Date.now() / 1000;
  const account = { foreign: 0, replayed: 0, notifications: 0, new: 0, bad: 0, late: 0, unfit: 0, future: 0, mismatched: 0, refused: 0, once: 0, held: 0, others: 0, unwritten: 0 };
  const sender = (address, rest) => ({ address, seen: now - 4, offset: 0.01, datagrams: 8640, values: 241920, ...account, ...rest });
  const host = (name, address, rest) => ({ host: name, address, seen: now - 4, gap: 10, offset: 0.01, rate: 2.8, values: 241920, ...rest });
  const scraped = (job, url, rest) => ({ job, url, seen: now - 6, interval: 15, duration: 0.021, samples: 1204, error: '', ...rest });
  return {
    hosts: { 'db-1': now + 600, 'db-2': now - 5400, 'web-2': now + 601, 'web-3': now + 600 },
    senders: {
      sockets: [{ name: '192.0.2.7:25826', lost: 0, senders: [sender('192.0.2.11'), sender('192.0.2.12', { seen: now - 5400 }), sender('192.0.2.21', { late: 12 }), sender('192.0.2.22')] }],
      lines: [{ protocol: 'statsd', clients: 2, datagrams: 51200, samples: 480000, refused: [] }],
      pushers: [{ protocol: 'remote_write', sender: '192.0.2.30', seen: now - 2, requests: 2880, samples: 5760000, series: 2000, refused: [] }],
      scraped: [scraped('node', 'http://192.0.2.11:9100/metrics'), scraped('node', 'http://192.0.2.21:9100/metrics', { samples: 1187, duration: 0.034 }), scraped('nginx', 'http://192.0.2.21:9113/metrics', { samples: 0, duration: 0.001, error: 'Connection refused' })],
      hosts: [host('db-1', '192.0.2.11'), host('db-2', '192.0.2.12', { seen: now - 5400, rate: 0 }), host('web-2', '192.0.2.21', { offset: -3.2 }), host('web-3', '192.0.2.22')],
    },
  };
}

async function shot(name, options, prepare) {
  if (only.length && !only.includes(name)) return;
  const { page, context, seen } = await open(browser, url, { height: 900, ...options });
  if (options.unlocked) {
    await page.evaluate((value) => localStorage.setItem('kymo.token', value), token);
    await page.reload();
  }
  await (options.until ? page.waitForFunction(options.until) : ready(page));
  await prepare?.(page);
  await page.waitForTimeout(1200);
  const path = `${FOLDER}/page-${name}.png`;
  await page.screenshot({ path });
  // A third of the bytes, for eyes the same; without the tool the picture stays as it is.
  spawnSync('pngquant', ['--force', '--ext', '.png', '--speed', '1', '--strip', '256', path]);
  for (const [kind, list] of Object.entries(seen)) if (list.length) console.error(name, kind, list);
  await context.close();
}

await shot('dark', { path: `?at=${spike}`, unlocked: true });
await shot('light', { dark: false });
await shot('phone', { width: 360, height: 740, deviceScaleFactor: 2 });
await shot('phone-table', { path: `?at=${spike}`, width: 360, height: 740, deviceScaleFactor: 2 }, (page) => page.evaluate(() => document.querySelector('.travel').scrollIntoView()));
await shot('compare', { path: `?from=${spike - 180}&thru=${spike + 120}&at=${spike - 60}&b=${spike}`, unlocked: true });
await shot('fields', { path: '?range=3600&view=fields&q=wait&fields=cpu.user~cpu.sys~cpu.wait|disk.read_kb~disk.write_kb|pressure.cpu_some~cpu.load1|net.rx_kb~net.tx_kb', until: () => [...document.querySelectorAll('#view-fields .key b')].filter((each) => /\d/.test(each.textContent)).length > 6 });
await shot('raw', { path: `?view=raw&source=proc/meminfo`, until: () => document.querySelector('pre')?.textContent.length > 20 });
await shot('series', { path: '?view=series&host=web-2', until: () => document.querySelectorAll('#view-series .card canvas').length > 7 && /\d/.test(document.querySelector('#view-series .key b')?.textContent) });
await shot('hosts', { path: '?view=hosts', height: 560, until: () => document.querySelectorAll('.hosts tbody tr').length > 3 });
await shot('help', {}, (page) => page.keyboard.press('?'));
await browser.close();
await own?.close();
