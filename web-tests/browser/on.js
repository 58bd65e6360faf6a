// Tests on a page and a server of their own, in one browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serve } from '../fixture/serve.js';
import { launch, open } from './open.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** A test; `served` are the options of its server, or a function that makes them. */
export function on(name, { served = {}, ...options }, run) {
  test(name, async () => {
    const server = await serve(typeof served === 'function' ? served() : served);
    const { page, context, seen } = await open(browser, server.url, options);
    try {
      await run(page, server);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name.replace(/\W+/g, '-')}.png` });
      assert.deepEqual(seen, { foreign: [], reports: [], errors: [], dialogs: [] });
    } finally {
      await context.close();
      await server.close();
    }
  });
}

export const until = (page, condition, given) => page.waitForFunction(condition, given);
export const has = (page, selector, wanted) => until(page, ([where, what]) => [...document.querySelectorAll(where)].some((each) => each.textContent.includes(what)), [selector, wanted]);
