// LLDP neighbours of the devices that kymo polls, in the view of hosts: a list, and a map of the lines with their
// traffic. Names are those of devices, which may be hostile: they become text alone.
import { h, text } from './dom.js';
import { rateText } from './target-units.js';
import { counted } from './units.js';

const COLUMNS = ['device', 'port', 'neighbour', 'its port', 'description', 'in', 'out'];
const EVERY_MS = 60000;
/** Bits a second, of values in bits. */
const BITS = { scale: 1, factor: 1, kilo: 1000, prefixes: ['', 'k', 'M', 'G', 'T'], name: 'b/s' };
const LIST = 'lldpRemSysName';
const rates = (way) =>
  `(rate(ifHC${way}Octets[15m]) or rate(if${way}Octets[15m])) * 8 and on(instance, ifName) ${LIST}`;
/** Size of a device's box, the least distance of two on the circle, and letters that are shown. */
const [WIDTH, HEIGHT, DISTANCE, LETTERS] = [150, 28, 190, 32];

/** A panel without neighbours is hidden. */
export function createNeighbours(ctx) {
  const sub = h('span', { class: 'sub' });
  const body = h('tbody', {});
  const heads = COLUMNS.map((title, n) => h('th', { class: n > 4 ? 'number' : '', scope: 'col' }, title));
  const table = h('table', { class: 'scraped neighbours' }, h('thead', {}, h('tr', {}, heads)), body);
  const map = h('div', { class: 'scroller' });
  const title = h('div', { class: 'when' }, h('h2', {}, 'Neighbours'), sub);
  const panel = h('section', { class: 'panel', hidden: true }, h('header', { class: 'bar' }, title));
  panel.append(h('div', { class: 'scroller' }, table), map);
  const view = { ctx, panel, sub, body, map, asked: -EVERY_MS };
  return { panel, load: (targets) => targets.some(isDevice) && load(view) };
}

const isDevice = ({ url }) => url.startsWith('snmp:');

async function load(view) {
  const now = performance.now();
  if (now - view.asked < EVERY_MS) return;
  view.asked = now;
  const ask = async (query) => (await view.ctx.api.prometheus('query', { query })).data.result;
  // who may not ask sees no neighbours
  const answers = await Promise.all([LIST, rates('In'), rates('Out')].map(ask)).catch(() => [[], [], []]);
  const found = readNeighbours(...answers);
  view.panel.hidden = !found.length;
  text(view.sub, `${counted(found.length, 'neighbour')} by LLDP, asked once an hour`);
  view.body.replaceChildren(...found.map(row));
  view.map.replaceChildren(drawMap(mapOf(found)));
}

/** Neighbours with the traffic of their ports, by device and port. */
export function readNeighbours(list, ins, outs) {
  const port = ({ instance, ifName }) => JSON.stringify([instance, ifName]);
  const [received, sent] = [ins, outs].map(
    (rows) => new Map(rows.map(({ metric, value }) => [port(metric), Number(value[1])])),
  );
  const found = list.map(({ metric }) => ({
    device: metric.instance ?? '',
    system: metric.sysName || metric.instance || '',
    port: metric.ifName ?? '',
    neighbour: metric.lldpRemSysName || metric.lldpRemChassisId || '',
    remote: metric.lldpRemPortId ?? '',
    description: metric.lldpRemPortDesc ?? '',
    in: received.get(port(metric)) ?? null,
    out: sent.get(port(metric)) ?? null,
  }));
  const key = ({ device, port }) => `${device}\0${port}`;
  return found.sort((a, b) => key(a).localeCompare(key(b), undefined, { numeric: true }));
}

function row(each) {
  const { device, port, neighbour, remote, description } = each;
  const cells = [port, neighbour, remote, description].map((word) => h('td', {}, word));
  const numbers = [each.in, each.out].map((rate) => h('td', { class: 'number' }, rateText(rate, BITS)));
  return h('tr', {}, h('td', { class: 'name' }, device), cells, numbers);
}

/** Names of devices in order, and lines between their places. A line that both of its devices list is there once. */
export function mapOf(found) {
  const names = [...new Set(found.flatMap(({ system, neighbour }) => [system, neighbour]))].sort();
  const lines = new Map();
  for (const each of found) {
    const ends = [each.system, each.neighbour].map((name) => names.indexOf(name));
    const sides = [`${ends[0]} ${each.port}`, `${ends[1]} ${each.remote}`].sort();
    const key = JSON.stringify(sides);
    const known = [each.in, each.out].some((rate) => rate !== null);
    const label = known ? `in ${rateText(each.in, BITS)}, out ${rateText(each.out, BITS)}` : '';
    if (!lines.get(key)?.label) lines.set(key, { ends, ports: [each.port, each.remote], label });
  }
  return { names, lines: [...lines.values()] };
}

/** The map: devices in a circle, lines between the same two side by side. */
function drawMap({ names, lines }) {
  const radius = Math.max((names.length * DISTANCE) / (2 * Math.PI), 220);
  const middle = radius + WIDTH / 2 + 10;
  const place = (n) => {
    const angle = 2 * Math.PI * (n / names.length - 0.25);
    return [middle + radius * Math.cos(angle), middle + radius * Math.sin(angle)];
  };
  const between = new Map();
  const drawn = lines.map(({ ends, ports, label }) => {
    const [from, to] = ends.map(place);
    const pair = String([...ends].sort());
    const shift = 14 * (between.get(pair) ?? 0);
    between.set(pair, shift / 14 + 1);
    const at = (part) => [from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part + shift];
    const [[x1, y1], [x2, y2]] = [at(0), at(1)];
    const texts = [write(at(0.27), ports[0]), write(at(0.73), ports[1]), write([at(0.5)[0], at(0.5)[1] + 13], label)];
    return [draw('line', { x1, y1, x2, y2 }), ...texts];
  });
  const boxes = names.map((name, n) => {
    const [x, y] = place(n);
    const box = { x: x - WIDTH / 2, y: y - HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: 4 };
    return [draw('rect', box), write([x, y + 4], name)];
  });
  const size = 2 * middle;
  const [title, all] = [`Map of ${counted(names.length, 'device')}`, [...drawn, ...boxes].flat()];
  return draw('svg', { class: 'map', width: size, height: size, role: 'img', 'aria-label': title }, ...all);
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const write = ([x, y], word) => {
  const signs = [...word];
  return draw('text', { x, y }, signs.length > LETTERS ? `${signs.slice(0, LETTERS).join('')}…` : word);
};
