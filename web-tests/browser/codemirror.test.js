// Prometheus' own editor of expressions (codemirror-promql, in Grafana and others too) as a client of the real `kymo serve`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { skip, startKymo } from '../fixture/kymo.js';
import { importMap, serveModules } from '../fixture/modules.js';
import { patience } from '../fixture/peers.js';
import { launch, open } from './open.js';

const EDITOR = '@prometheus-io/codemirror-promql';
// An editor alone on a page of kymo's origin; `asked` is what its client asks, `failed` what it says of answers.
const PAGE = `<!doctype html><title>editor</title><script type="importmap">${skip ? '{}' : JSON.stringify(importMap(EDITOR))}</script><div id="place"></div>
<script type="module">
import { PromQLExtension } from '${EDITOR}';
import { HTTPPrometheusClient } from '${EDITOR}/dist/esm/client/prometheus.js';
import { EditorView, keymap } from '@codemirror/view';
import { autocompletion, completionKeymap } from '@codemirror/autocomplete';
window.asked = [];
window.failed = [];
const config = (more) => ({
  url: '',
  httpErrorHandler: (error) => failed.push(String(error)),
  fetchFn: (input, init) => fetch(input, init).then((answer) => (asked.push([init.method ?? 'GET', new URL(input, location).pathname, answer.status]), answer)),
  ...more,
});
window.client = (more) => new HTTPPrometheusClient(config(more));
const promql = new PromQLExtension().setComplete({ remote: config({ lookbackInterval: 3600000 }) });
window.editor = new EditorView({
  extensions: [promql.asExtension(), autocompletion({ activateOnTypingDelay: 0 }), keymap.of(completionKeymap)],
  parent: document.getElementById('place'),
});
</script>`;

let browser, kymo;
before(async () => {
  if (skip) return;
  kymo = await startKymo('[listen]\ncollectd = []\n');
  browser = await launch();
  const cpu = `${kymo.url}api/v1/series?match[]=node_cpu_seconds_total`;
  await patience(async () => (await (await fetch(cpu)).json()).data.length > 0);
});
after(async () => {
  await browser?.close();
  await kymo?.end();
});

async function editor(run) {
  const { page, context, seen } = await open(browser, 'about:blank');
  await page.route('**/editor', (route) => route.fulfill({ contentType: 'text/html', body: PAGE }));
  await serveModules(page);
  await page.goto(`${kymo.url}editor`);
  await page.waitForFunction(() => window.editor).catch((error) => assert.fail(`${error}: ${seen.errors}`));
  await run(page);
  assert.deepEqual(await page.evaluate(() => window.failed), []);
  assert.deepEqual(seen, { foreign: [], reports: [], errors: [], dialogs: [] });
  await context.close();
}

/** What a client with these settings answers to each of its questions. */
const answers = (page, settings) => page.evaluate(async (more) => {
  const client = window.client(more);
  return {
    names: await client.labelNames(),
    ofCpu: await client.labelNames('node_cpu_seconds_total'),
    modes: await client.labelValues('mode', 'node_cpu_seconds_total', []),
    metrics: await client.metricNames(),
    metadata: await client.metricMetadata(),
    series: await client.series('node_cpu_seconds_total', [], ''),
    flags: await client.flags(),
  };
}, settings);

test('each question of the client has an answer, by both methods and below both paths', { skip }, async () => {
  await editor(async (page) => {
    for (const settings of [{}, { httpMethod: 'GET', lookbackInterval: 600000 }, { apiPrefix: '/prometheus/api/v1' }]) {
      const found = await answers(page, settings);
      assert.deepEqual(found.ofCpu, ['__name__', 'cpu', 'instance', 'job', 'mode'], JSON.stringify(settings));
      assert.ok(found.names.includes('mode') && found.names.includes('device'));
      assert.ok(found.modes.includes('idle') && found.modes.includes('user'));
      assert.ok(found.metrics.includes('node_load1'));
      assert.equal(found.metadata.node_cpu_seconds_total[0].type, 'counter');
      assert.ok(found.series.some((labels) => labels.mode === 'idle' && labels.cpu === '0'));
      assert.equal(found.flags['query.lookback-delta'], '300s');
    }
    const asked = await page.evaluate(() => window.asked);
    assert.deepEqual(asked.filter(([, , status]) => status !== 200), []);
    assert.ok(asked.some(([method, path]) => method === 'POST' && path === '/api/v1/series'));
    // An error is Prometheus', and the client shows its text.
    const said = await page.evaluate(() => window.client({}).labelValues('mode', 'a{b', []).then(() => window.failed.splice(0)));
    assert.match(said[0], /invalid parameter "match\[\]"/);
  });
});

test('completion shows metrics with their types, labels and values', { skip }, async () => {
  const options = (page) => page.locator('.cm-tooltip-autocomplete li');
  const offers = (page, label) => options(page).filter({ hasText: label }).first().waitFor();
  await editor(async (page) => {
    await page.locator('.cm-content').click();
    await page.keyboard.type('rate(node_cpu_sec');
    await offers(page, 'node_cpu_seconds_total');
    assert.match(await options(page).filter({ hasText: 'node_cpu_seconds_total' }).textContent(), /counter/);
    await page.keyboard.press('Escape');
    await page.keyboard.type('onds_total{mo');
    await offers(page, 'mode');
    await page.keyboard.press('Escape');
    await page.keyboard.type('de="id');
    await offers(page, 'idle');
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/codemirror.png` });
  });
});
