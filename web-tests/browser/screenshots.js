// Pictures for the README, of the real thing where KYMO names it and a recording is served at KYMO_URL, else of the fixture's made-up machine.
import { fileURLToPath } from 'node:url';
import { serve } from '../fixture/serve.js';
import { launch, open, ready } from './open.js';

const FOLDER = process.env.SHOTS ?? fileURLToPath(new URL('../../docs/screenshots/', import.meta.url));
const own = process.env.KYMO_URL ? null : await serve({ polite: true });
const url = process.env.KYMO_URL ?? own.url;
const token = process.env.KYMO_TOKEN ?? 'fixture-token';
const spike = Number(process.env.SPIKE ?? own?.machine.spike[0] + 12);
const browser = await launch();
const only = process.argv.slice(2);

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
  await page.screenshot({ path: `${FOLDER}/page-${name}.png` });
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
await shot('help', {}, (page) => page.keyboard.press('?'));
await browser.close();
await own?.close();
