// The browser of `kymo-bench serve`: opens pages in Chromium and prints what it saw, a line of words each time.
// WEB names the folder with playwright-core, CHROMIUM the browser. Nothing but this machine can be reached.
//
//   page.mjs stay URL...                    opens each in a tab of its own; `open`, then stays
//   page.mjs start URL...                   for each: `ready`; goes there as soon as it answers; `drawn LOADED DRAWN`, ms since 1970
//   page.mjs weight URL                     `weight BYTES COUNT BYTES COUNT BYTES`: files, answers, heads of both
//   page.mjs first-view URL ROUNDS FOLDER   `charts CHARTS LINES` in sight, then `view OWN STATIC` in ms, in turns with a static page
//   page.mjs files FOLDER                   serves a folder, compressed; prints its port
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const OWN = fileURLToPath(import.meta.url);
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1'];
const WINDOW = { width: 1440, height: 900 };
const PATIENCE_MS = 60000;

const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function launch() {
  const { chromium } = createRequire(join(process.env.WEB, 'package.json'))('playwright-core');
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
}

/** A tab that remembers nothing of others. */
async function tab(browser) {
  const context = await browser.newContext({ viewport: WINDOW, colorScheme: 'dark', locale: 'en-GB' });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.addInitScript(watchCanvases);
  return page;
}

/**
 * Runs in the page. uPlot draws its lines and areas as Path2D, axes and grid without: a canvas that was given a path is
 * a chart with numbers. `drawn` holds when each first was.
 */
function watchCanvases() {
  const drawn = (window.drawn = new Map());
  for (const name of ['stroke', 'fill']) {
    const plain = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      if (given[0] instanceof Path2D && !drawn.has(this.canvas)) drawn.set(this.canvas, performance.now());
      return plain.apply(this, given);
    };
  }
}

/** Ms from the start of the navigation until so many canvases were drawn, and the frame that shows them was on its way. */
async function drawnAfter(page, count) {
  return page.evaluate((wanted) => new Promise((done) => {
    const look = () => (window.drawn.size < wanted ? requestAnimationFrame(look) : done(Math.max(...[...window.drawn.values()].sort((a, b) => a - b).slice(0, wanted))));
    look();
  }), count);
}

const verbs = {
  async stay(...urls) {
    const browser = await launch();
    for (const url of urls) await (await tab(browser)).goto(url, { waitUntil: 'domcontentloaded' });
    say('open');
    await new Promise(() => {});
  },

  async start(...urls) {
    const browser = await launch();
    for (const url of urls) {
      const page = await tab(browser);
      say('ready');
      await answers(new URL(url).port);
      const loaded = await load(page, url);
      // live, and the CPU's graph among those with numbers: it is the last to have any, as it takes two samples
      const drawn = await page.evaluate(() => new Promise((done) => {
        const look = () => {
          const cpu = window.drawn.get(document.querySelector('.card[data-panel=cpu] canvas'));
          const live = document.getElementById('live').dataset.state === 'live';
          if (cpu && live && window.drawn.size >= 3) done(performance.timeOrigin + performance.now());
          else requestAnimationFrame(look);
        };
        look();
      }));
      say('drawn', loaded, drawn);
      await page.context().close();
    }
    await browser.close();
  },

  async weight(url) {
    const browser = await launch();
    const page = await tab(browser);
    const session = await page.context().newCDPSession(page);
    const bodies = new Map();
    const sums = { files: [0, 0], answers: [0, 0], heads: [0] };
    await session.send('Network.enable');
    session.on('Network.responseReceived', ({ requestId, response }) => {
      const { pathname } = new URL(response.url);
      const length = Object.entries(response.headers).find(([name]) => name.toLowerCase() === 'content-length');
      bodies.set(requestId, { sum: sums[pathname.includes('/api/') ? 'answers' : 'files'], bytes: length && Number(length[1]) });
    });
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const { sum, bytes = encodedDataLength } = bodies.get(requestId) ?? {};
      if (!sum) return;
      sum[0] += bytes;
      sum[1] += 1;
      sums.heads[0] += encodedDataLength - bytes;
    });
    await page.goto(url);
    await drawnAfter(page, 5);
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length > 5);
    await pause(300);
    say('weight', ...sums.files, ...sums.answers, ...sums.heads);
    await browser.close();
  },

  async 'first-view'(url, rounds, folder) {
    const browser = await launch();
    const { plots, lines } = await capture(browser, url);
    const still = await staticPage(plots, folder);
    say('charts', plots.length, lines);
    const view = async (where) => {
      const page = await tab(browser);
      await page.goto(where, { waitUntil: 'commit' });
      const ms = await drawnAfter(page, plots.length);
      await page.context().close();
      return ms;
    };
    // the first of each fills caches of the machine
    for (const where of [url, still.url]) await view(where);
    for (let round = 0; round < Number(rounds); round++) {
      const order = round % 2 ? [still.url, url] : [url, still.url];
      const times = new Map();
      for (const where of order) times.set(where, await view(where));
      say('view', times.get(url), times.get(still.url));
    }
    still.server.kill();
    await browser.close();
  },

  async files(folder) {
    const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8' };
    const files = new Map(readdirSync(folder).map((name) => [`/${name}`, { type: types[extname(name)], bytes: gzipSync(readFileSync(join(folder, name)), { level: 9 }) }]));
    const server = createServer((request, response) => {
      const file = files.get(request.url);
      response.writeHead(file ? 200 : 404, file && { 'Content-Type': file.type, 'Content-Encoding': 'gzip', 'Content-Length': file.bytes.length });
      response.end(file?.bytes);
    });
    server.listen(0, '127.0.0.1', () => say(server.address().port));
  },
};

/** Waits until somebody listens. */
async function answers(port) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await pause(2)) {
    const open = await new Promise((done) => {
      const socket = connect(Number(port), '127.0.0.1', () => done(true)).on('error', () => done(false));
      socket.on('connect', () => socket.destroy());
    });
    if (open) return;
  }
  throw new Error(`nobody listens on ${port}`);
}

/** Goes there, again and again until it works; when the answer began, in ms since 1970. */
async function load(page, url) {
  for (const end = Date.now() + PATIENCE_MS; ;) {
    try {
      await page.goto(url, { waitUntil: 'commit' });
      return await page.evaluate(() => performance.timeOrigin + performance.getEntriesByType('navigation')[0].responseStart);
    } catch (error) {
      if (Date.now() > end) throw error;
      await pause(5);
    }
  }
}

/** Loads the page once with a uPlot that keeps its charts where they can be found, and describes them. */
async function capture(browser, url) {
  const page = await tab(browser);
  await page.route('**/page.js', async (route) => {
    const response = await route.fetch();
    const found = /return \{ default: uPlot \};/;
    const kept = 'function Kept(...given) { const plot = new uPlot(...given); (window.plots ??= []).push(plot); return plot; }\nObject.assign(Kept, uPlot);\nreturn { default: Kept };';
    const body = await response.text();
    if (!found.test(body)) throw new Error('another uPlot than the bench knows');
    await route.fulfill({ response, body: body.replace(found, kept) });
  });
  await page.goto(url);
  await page.waitForFunction(() => window.drawn.size >= 5);
  await pause(1000);
  const plots = await page.evaluate(() => {
    const plain = (value, ...given) => (typeof value === 'function' ? value(...given) : value);
    const range = (plot, scale) => [plot.scales[scale].min, plot.scales[scale].max];
    // The table of processes covers what is below its upper edge.
    const fold = Math.min(innerHeight, document.querySelector('.dock')?.getBoundingClientRect().top ?? innerHeight);
    const isInSight = ({ canvas }) => canvas.getBoundingClientRect().top < fold;
    return window.plots.filter(({ ctx }) => window.drawn.has(ctx.canvas) && isInSight(ctx)).map((plot) => ({
      width: plot.width, height: plot.height, data: plot.data,
      series: plot.series.slice(1).map((each, n) => ({ scale: each.scale, width: each.width, dash: each.dash ?? undefined, stroke: plain(each.stroke, plot, n + 1), fill: plain(each.fill, plot, n + 1), points: { show: false } })),
      bands: plot.bands.map((band) => ({ series: band.series, fill: plain(band.fill, plot, 0) })),
      scales: Object.fromEntries(Object.entries(plot.scales).map(([key, scale]) => [key, { range: [scale.min, scale.max] }])),
      axes: plot.axes.map(({ scale, side, size, gap, space, stroke }, n) => ({ scale, side, size: plain(size, plot, [], n, 0), gap, space: plain(space, plot, n, ...range(plot, scale), plot.bbox.width / devicePixelRatio), stroke: plain(stroke, plot, n) })),
    }));
  });
  await page.context().close();
  return { plots, lines: plots.reduce((sum, plot) => sum + plot.series.length + plot.bands.length, 0) };
}

/** A page with the same charts and nothing else, in a server of its own. */
async function staticPage(plots, folder) {
  for (const name of ['uPlot.esm.js', 'uPlot.min.css']) {
    writeFileSync(join(folder, name), readFileSync(new URL(`../../crates/serve/assets/vendor/uPlot/${name}`, import.meta.url)));
  }
  const json = JSON.stringify(plots).replaceAll('<', '\\u003c');
  writeFileSync(join(folder, 'index.html'), `<!doctype html><meta charset="utf-8"><title>static</title><link rel="stylesheet" href="/uPlot.min.css">
<style>body{display:grid;grid-template-columns:1fr 1fr;background:#111}</style><script type="application/json" id="plots">${json}</script>
<script type="module">import uPlot from './uPlot.esm.js';
for (const { data, ...plot } of JSON.parse(document.getElementById('plots').textContent)) {
  for (const scale of Object.values(plot.scales)) { const [low, high] = scale.range; scale.range = () => [low, high]; }
  new uPlot({ ...plot, padding: [8, 10, 0, 0], cursor: { show: false }, legend: { show: false }, select: { show: false }, series: [{}, ...plot.series] }, data, document.body);
}</script>`);
  const server = spawn(process.execPath, [OWN, 'files', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await new Promise((done) => server.stdout.once('data', (text) => done(Number(text))));
  return { server, url: `http://127.0.0.1:${port}/index.html` };
}

const [verb, ...words] = process.argv.slice(2);
try {
  await verbs[verb](...words);
} catch (error) {
  console.error(String(error.message ?? error).split('\n')[0]);
  process.exit(1);
}
