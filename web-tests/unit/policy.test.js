// The policy that the server sends, held in the source too: no HTML from strings, nothing inline, nothing from elsewhere.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { files, read } from './assets.js';

const FORBIDDEN = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|DOMParser|srcdoc|setAttribute\(['"]style|\.cssText|importScripts|javascript:/;
const WEIGHT_MOST = 150 * 1000;
const WEIGHT_ALL_MOST = 175 * 1000;
const own = files.filter((name) => name.endsWith('.js') && !name.startsWith('vendor/'));

for (const name of files.filter((each) => each.endsWith('.js'))) {
  test(`${name} makes no HTML from text`, () => {
    assert.equal(FORBIDDEN.exec(read(name).toString())?.[0], undefined);
  });
}

test('the search for HTML from text finds it', () => {
  for (const bad of ['a.innerHTML = b', 'document.write(x)', 'eval(x)', "e.setAttribute('style', x)", 'e.style.cssText = x']) assert.match(bad, FORBIDDEN);
});

test('index.html has nothing inline, and only relative addresses', () => {
  const html = read('index.html').toString();
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<base/i);
  for (const [, script] of html.matchAll(/<script[^>]*>([^<]*)<\/script>/g)) assert.equal(script, '');
  const addresses = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address);
  assert.ok(addresses.length > 10);
  for (const address of addresses) {
    assert.match(address, /^\.\//);
    assert.ok(files.includes(address.slice(2)), `${address} is there`);
  }
});

/** A module and all that it imports from the start; `import()` is for later. */
function closure(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const [, from] of read(name).toString().matchAll(/^import [^;]*?from '\.\/([^']*)'/gm)) closure(from, found);
  return found;
}

test('each module of the first view is fetched at once, not when another has been read; no other is', () => {
  const html = read('index.html').toString();
  const preloaded = [...html.matchAll(/rel="modulepreload" href="\.\/([^"]*)"/g)].map(([, name]) => name).sort();
  assert.deepEqual(preloaded, [...closure('app.js', closure('early.js'))].filter((name) => name !== 'app.js').sort());
});

test('modules import only their neighbours', () => {
  for (const name of own) {
    for (const [, from] of read(name).toString().matchAll(/(?:from |import\()'([^']*)'/g)) assert.ok(files.includes(from.replace('./', '')), `${name} imports ${from}`);
  }
});

test('only chart.js knows uPlot', () => {
  assert.deepEqual(own.filter((name) => /uPlot\.esm/.test(read(name).toString())), ['chart.js']);
});

test('no function is over a screen', () => {
  for (const name of own) {
    let start = 0;
    read(name).toString().split('\n').forEach((line, n) => {
      if (/^(export )?(async )?function /.test(line)) start = n;
      if (line === '}') assert.ok(n - start < 70, `${name}:${start + 1} has ${n - start} lines`);
    });
  }
});

/** A module and all that it imports, at once or later, but for tabs that are fetched when they are opened. */
function reach(name, later, found = new Set()) {
  if (found.has(name) || later.includes(name)) return found;
  found.add(name);
  for (const [, from] of read(name).toString().matchAll(/(?:from |import\()'\.\/([^']*)'/g)) reach(from, later, found);
  return found;
}

test('the page weighs no more than it may: what is fetched at first, and all of it', (t) => {
  const [, list] = /const LATER: \[&str; \d+\] = \[([^\]]*)\]/.exec(readFileSync(new URL('../../crates/serve/build.rs', import.meta.url)));
  const later = [...list.matchAll(/"([^"]+)"/g)].map(([, name]) => name);
  assert.ok(later.length && later.every((name) => files.includes(name)));
  const first = reach('app.js', later, reach('early.js', later));
  const weightOf = (names) => names.filter((name) => !name.endsWith('LICENSE')).reduce((sum, name) => sum + gzipSync(read(name), { level: 9 }).length, 0);
  const [at, all] = [weightOf(files.filter((name) => !name.endsWith('.js') || first.has(name))), weightOf(files)];
  t.diagnostic(`${(at / 1000).toFixed(1)} kB gzipped at first, ${(all / 1000).toFixed(1)} kB in all`);
  assert.ok(at <= WEIGHT_MOST, `${at} bytes`);
  assert.ok(all <= WEIGHT_ALL_MOST, `${all} bytes`);
  assert.ok(!later.some((name) => first.has(name)));
});
