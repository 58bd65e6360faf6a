// Chromium with a page that writes down what it must not do: other origins, CSP reports, errors.
import { chromium } from 'playwright-core';
import { PATIENCE_MS } from '../fixture/peers.js';
import { serve } from '../fixture/serve.js';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });

/** A page at `url`; `seen` fills with what a stranger must never find. */
export async function open(browser, url, { width = 1440, height = 900, dark = true, path = '', ...others } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', locale: 'en-GB', timezoneId: 'Europe/Berlin', acceptDownloads: true, ...others });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const seen = { foreign: [], reports: [], errors: [], dialogs: [] };
  page.on('request', (request) => !/^(http:\/\/127\.0\.0\.1:\d+\/|data:|blob:|about:)/.test(request.url()) && seen.foreign.push(request.url()));
  page.on('pageerror', (error) => seen.errors.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) (/(Content Security Policy|Trusted)/i.test(message.text()) ? seen.reports : seen.errors).push(message.text()); });
  page.on('dialog', (dialog) => { seen.dialogs.push(dialog.message()); dialog.dismiss(); });
  await page.addInitScript(() => addEventListener('securitypolicyviolation', (event) => console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`)));
  await page.goto(url + path);
  return { page, context, seen };
}

/** The page has drawn graphs and a table, and hears keys. */
export async function ready(page) {
  await page.waitForFunction(() => document.querySelectorAll('.card canvas').length > 5 && document.querySelectorAll('tbody tr').length > 5);
  await hearsKeys(page);
}

/** The line of costs is made when keys are bound. */
export const hearsKeys = (page) => page.waitForFunction(() => document.querySelector('#cost .costline'));

export async function withFixture(options, run) {
  const server = await serve(options);
  const browser = await launch();
  try {
    await run(server, browser);
  } finally {
    await browser.close();
    await server.close();
  }
}
