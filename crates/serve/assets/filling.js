// What an empty tab shows: lines to copy that would fill it, with this machine's address. Names from outside are text.
import { copied } from './copied.js';
import { h } from './dom.js';

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[?::1\]?)$/;
const CONFIG = '/etc/kymo/kymo.toml';
const AUTH_FILE = '/etc/kymo/collectd.auth';
const PASSWORD = 'web1: a password of your own';
const COLLECTD_PORT = '25826';
const RESTART = 'sudo systemctl restart kymo';

/** The address under which others reach this machine. */
export function addressOf(hostname, status) {
  return LOOPBACK.test(hostname) ? (status?.address ?? hostname) : hostname;
}

/** A socket's name, `127.0.0.1:25826`, as {address, port}. */
export function socketOf(name) {
  const colon = name.lastIndexOf(':');
  return { address: name.slice(0, colon), port: name.slice(colon + 1) };
}

const collectdLines = (address, port, more = []) => [
  'LoadPlugin network',
  '<Plugin network>',
  `  <Server "${address}" "${port}">`,
  ...more,
  '  </Server>',
  '</Plugin>',
];

/** The network that an address is of, as a first guess: datagrams of others are dropped. */
const networkOf = (address) => address.replace(/^(\d+\.\d+\.\d+)\.\d+$/, '$1.0/24');

const withPort = (address, port) => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`);

/**
 * Steps of `{words, lines}` for collectd: senders know this machine by `address`, kymo listens on `own`. `sockets`:
 * names of those that take its datagrams.
 */
export function collectdSteps(address, own, sockets) {
  const all = sockets.map(socketOf);
  const here = all.find((each) => LOOPBACK.test(each.address));
  const open = all.find((each) => !LOOPBACK.test(each.address));
  const steps = [];
  const local = here ?? (open && { address: '127.0.0.1', port: open.port });
  if (local)
    steps.push({
      words: 'collectd on this machine: these lines in its collectd.conf, then restart it.',
      lines: ['LoadPlugin network', `<Plugin network>`, `  Server "${local.address}" "${local.port}"`, '</Plugin>'],
    });
  const signs = ['    SecurityLevel Sign', '    Username "web1"', '    Password "a password of your own"'];
  if (!open)
    steps.push({
      words: `Other machines: these lines in ${CONFIG}, the line “${PASSWORD}” in ${AUTH_FILE}, then restart kymo.`,
      lines: [
        '[listen]',
        `collectd = ["${withPort(own, COLLECTD_PORT)}"]`,
        '[collectd]',
        'security = "sign"',
        `auth_file = "${AUTH_FILE}"`,
        `allow = ["${networkOf(own)}"]`,
      ],
    });
  if (!open)
    steps.push({
      words: 'kymo’s unit of systemd lets in this machine alone: these lines by “systemctl edit kymo”.',
      lines: ['[Service]', `IPAddressAllow=${networkOf(own)}`],
    });
  steps.push({
    words: 'And in collectd.conf of each of them:',
    lines: collectdLines(address, open?.port ?? COLLECTD_PORT, signs),
  });
  return steps;
}

/** Steps for statsd; `listens`: it is open already. */
export function statsdSteps(listens) {
  const config = {
    words: `Programs that speak statsd: in ${CONFIG}, then restart kymo.`,
    lines: ['[listen]', 'statsd = ["127.0.0.1:8125"]'],
  };
  const sent = { words: 'A first value, from bash:', lines: ['echo "checkout.paid:1|c" > /dev/udp/127.0.0.1/8125'] };
  return listens ? [sent] : [config, sent];
}

/** Steps for a program that publishes; `base` is the page's own address, which has the header and an example. */
export const programSteps = (base) => [
  {
    words: 'A program in C, on this machine: the header and an example come from here.',
    lines: [
      `curl -sO ${base}kymo.h -O ${base}publish.c`,
      'cc -std=gnu11 -O2 -o publish publish.c',
      'sleep 600 | ./publish &',
    ],
  },
];

/** Steps for PostgreSQL. */
export const postgresSteps = () => [
  {
    words: 'PostgreSQL, which is asked by SQL and gets a tab of its own:',
    lines: [
      "sudo -u postgres psql -c 'CREATE ROLE kymo LOGIN; GRANT pg_monitor TO kymo;'",
      `echo '[postgres.servers.main]' | sudo tee -a ${CONFIG}`,
      RESTART,
    ],
  },
];

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Steps for devices that are asked by SNMP; `folder` is one that is there, for files of MRTG. */
export const targetSteps = (address, folder) => [
  {
    words: 'Devices that speak SNMP: this machine to begin with; name a device in place of its address.',
    lines: [
      `cfgmaker --global ${quoted(`WorkDir: ${folder}`)} public@${address} | sudo tee /etc/kymo/mrtg.cfg`,
      `printf '[poll]\\nmrtg = ["/etc/kymo/mrtg.cfg"]\\n' | sudo tee -a ${CONFIG}`,
      RESTART,
    ],
  },
];

/** The folder of the recording, or that of the service. */
const folderOf = (status) => (status?.path?.startsWith('/') ? status.path : '/var/lib/kymo');

async function stepsOf(kind, ctx) {
  const address = addressOf(location.hostname, ctx.status);
  if (kind === 'programs') return programSteps(new URL('.', location.href).href);
  if (kind === 'postgres') return postgresSteps();
  if (kind === 'targets') return targetSteps(address, folderOf(ctx.status));
  const { sockets, lines } = await ctx.api.get('hosts').catch(() => ({ sockets: [], lines: [] }));
  if (kind === 'collectd')
    return collectdSteps(
      address,
      ctx.status?.address ?? address,
      sockets.map(({ name }) => name),
    );
  return statsdSteps(lines.some(({ protocol }) => protocol === 'statsd'));
}

/** Puts the steps of these kinds into an element, once. */
export async function fillEmpty(element, ctx, kinds) {
  if (element.dataset.filled === kinds.join()) return;
  element.dataset.filled = kinds.join();
  element.classList.add('empty');
  const steps = (await Promise.all(kinds.map((kind) => stepsOf(kind, ctx)))).flat();
  element.replaceChildren(
    h('h2', {}, 'Nothing is here yet.'),
    ...steps.flatMap(({ words, lines }) => [h('p', {}, words), copied(lines.join('\n'))]),
  );
}
