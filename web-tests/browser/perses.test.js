// The Prometheus plugin of Perses as a client of the real `kymo serve`: its requests and its reading of the answers. Perses itself, which
// gives the plugin a time range and the address of a source, is played by the test.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { build } from 'esbuild-wasm';
import { skip, startKymo } from '../fixture/kymo.js';
import { patience } from '../fixture/peers.js';
import { launch, open } from './open.js';

const PLUGIN = '../node_modules/@perses-dev/prometheus-plugin/lib';
const CLIENT = `
import { getTimeSeriesData } from '${PLUGIN}/plugins/prometheus-time-series-query/get-time-series-data.js';
import * as model from '${PLUGIN}/model/prometheus-client.js';
window.client = (datasourceUrl) => Object.fromEntries(Object.entries(model).map(([name, asked]) =>
  [name, name === 'healthCheck' ? asked({ datasourceUrl }) : (params) => asked(params, { datasourceUrl })]));
window.panel = (query, { datasourceUrl = '', seconds = 60, ...more } = {}) => getTimeSeriesData({ query, minStep: '1s', seriesNameFormat: '{{mode}}' }, {
  timeRange: { start: new Date(Date.now() - seconds * 1000), end: new Date() },
  variableState: {},
  datasourceStore: {
    listDatasourceSelectItems: async () => [],
    getDatasource: async () => ({ plugin: { spec: {} } }),
    getDatasourceClient: async () => window.client(datasourceUrl),
  },
  ...more,
});`;

/** What Perses does for a plugin, for a panel without variables. */
const HOST = `
export const replaceVariables = (text) => text;
export const replaceVariable = (text, name, value) => text.replaceAll('$' + name, value);
export const datasourceSelectValueToSelector = (value) => value;
export const isVariableDatasource = () => false;`;

const host = {
  name: 'host',
  setup: (of) => {
    of.onResolve({ filter: /^@perses-dev\/plugin-system$/ }, () => ({ path: 'host', namespace: 'host' }));
    of.onLoad({ filter: /./, namespace: 'host' }, () => ({ contents: HOST }));
  },
};

async function bundle() {
  const stdin = { contents: CLIENT, resolveDir: import.meta.dirname };
  const { outputFiles } = await build({ stdin, bundle: true, write: false, format: 'esm', define: { global: 'globalThis' }, plugins: [host], logLevel: 'error' });
  return outputFiles[0].text.replaceAll('</script', '<\\/script');
}

let browser, kymo, page, seen;
before(async () => {
  if (skip) return;
  const [script, started] = await Promise.all([bundle(), startKymo('[listen]\ncollectd = []\n')]);
  kymo = started;
  browser = await launch();
  const cpu = `${kymo.url}api/v1/query?query=node_cpu_seconds_total`;
  await patience(async () => (await (await fetch(cpu)).json()).data.result.length > 0);
  ({ page, seen } = await open(browser, 'about:blank'));
  await page.route('**/panel', (route) => route.fulfill({ contentType: 'text/html', body: `<!doctype html><title>panel</title><script type="module">${script}</script>` }));
  await page.goto(`${kymo.url}panel`);
  await page.waitForFunction(() => window.panel).catch((error) => assert.fail(`${error}: ${seen.errors}`));
});
after(async () => {
  await browser?.close();
  await kymo?.end();
});

test('each request of the plugin has an answer, below both paths', { skip }, async () => {
  for (const path of ['', '/prometheus']) {
    const found = await page.evaluate(async (datasourceUrl) => {
      const client = window.client(datasourceUrl);
      const match = ['node_cpu_seconds_total'];
      return {
        healthy: await client.healthCheck(),
        names: (await client.labelNames({ 'match[]': match })).data,
        modes: (await client.labelValues({ labelName: 'mode', 'match[]': match })).data,
        series: (await client.series({ 'match[]': match })).data,
        metadata: (await client.metricMetadata({ metric: 'node_load1' })).data,
        instant: (await client.instantQuery({ query: 'sum(node_load1)' })).data,
        tree: (await client.parseQuery({ query: 'rate(node_cpu_seconds_total[1m])' })).data,
        refused: await client.instantQuery({ query: 'sum(' }).then(() => '', String),
      };
    }, path);
    assert.equal(found.healthy, true, path);
    assert.deepEqual(found.names, ['__name__', 'cpu', 'instance', 'job', 'mode']);
    assert.ok(found.modes.includes('idle') && found.series.some(({ mode, cpu }) => mode === 'idle' && cpu === '0'));
    assert.equal(found.metadata.node_load1[0].type, 'gauge');
    assert.equal(found.instant.resultType, 'vector');
    assert.equal(found.instant.result.length, 1);
    assert.deepEqual([found.tree.type, found.tree.func.name], ['call', 'rate']);
    assert.match(found.refused, /parse error: unclosed left parenthesis/);
  }
});

/** The data of a panel, once they are as wanted: the recording has just begun. */
async function panel(query, options, isWanted) {
  let data;
  await patience(async () => {
    data = await page.evaluate(([query, options]) => window.panel(query, options), [query, options]);
    return isWanted(data);
  });
  return data;
}

test('a panel has its lines, with names, stamps and steps', { skip }, async () => {
  const drawn = await panel('avg by (mode) (rate(node_cpu_seconds_total[5s]))', {}, ({ series }) => series.length > 4 && series[0].values.length > 3);
  const idle = drawn.series.find(({ formattedName }) => formattedName === 'idle');
  assert.deepEqual(idle.labels, { mode: 'idle' });
  assert.equal(drawn.stepMs % 1000, 0);
  for (const [at, [stamp, value]] of idle.values.entries()) {
    assert.ok(value >= 0 && value < 1.5, `${value}`);
    if (at > 0) assert.ok((stamp - idle.values[at - 1][0]) % drawn.stepMs === 0);
  }
  const instant = await panel('node_load1', { mode: 'instant' }, ({ series }) => series.length > 0);
  assert.equal(instant.series[0].values.length, 1);
  const long = await panel('node_load1', { seconds: 7200, suggestedStepMs: 2000 }, ({ series }) => series[0]?.values.length > 1);
  assert.deepEqual([long.stepMs, long.series.length], [2000, 1]);
  const refused = await page.evaluate(() => window.panel('sum(').then(() => '', String));
  assert.match(refused, /parse error/);
  assert.deepEqual(seen.errors.concat(seen.foreign, seen.reports), []);
});
