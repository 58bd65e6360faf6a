// The charts of what is not recorded everywhere, by the subsystem that each is of.
import { STANDARD } from './standard.js';

const layer = (id, label, colour) => ({ id, label, colour });
const lines = (...pairs) => pairs.map(([id, label], n) => layer(id, label, n + 1));
const each = (id, label = '') => layer(`${id}:*`, label, 1);
// instances of which some have no such number are left out
const known = {};

const SOFTIRQS = ['TIMER', 'NET_RX', 'NET_TX', 'BLOCK', 'TASKLET', 'SCHED', 'HRTIMER', 'RCU', 'HI', 'IRQ_POLL'];

export const MORE = [
  { of: 'tcp', id: 'tcp', title: 'TCP', ...STANDARD.tcp },
  {
    of: 'tcp',
    id: 'connections',
    title: 'TCP connections',
    layers: lines(
      ['tcp.tcp_established', 'established'],
      ['tcp.tcp_failed', 'failed'],
      ['tcp.tcp_resets', 'ended by a reset'],
      ['tcp.tcp_out_resets', 'resets sent'],
      ['tcp.tcp_listen_drops', 'refused by listeners'],
    ),
  },
  {
    of: 'tcp',
    id: 'udp',
    title: 'UDP and ICMP',
    layers: lines(
      ['tcp.udp_in', 'UDP in'],
      ['tcp.udp_out', 'UDP out'],
      ['tcp.udp_in_errors', 'UDP errors'],
      ['tcp.udp_no_port', 'UDP, no port'],
      ['tcp.icmp_in', 'ICMP in'],
      ['tcp.icmp_out', 'ICMP out'],
    ),
  },
  { of: 'tcp', id: 'protocols', title: 'Errors of IP, TCP, UDP, ICMP', ...STANDARD.protocols },
  {
    of: 'interrupts',
    id: 'interrupts',
    title: 'Interrupts',
    layers: lines(['interrupts.total', 'all CPUs']),
    split: { label: 'each CPU', layers: [each('cpu.intr')] },
  },
  {
    of: 'interrupts',
    id: 'softirqs',
    title: 'Softirqs',
    known,
    layers: lines(...SOFTIRQS.map((name) => [`interrupts.total:${name}`, name])),
  },
  {
    of: 'buddy',
    id: 'buddy',
    title: 'Free memory by size',
    note: 'by pages',
    layers: lines(
      ['buddy.pages1', '1'],
      ['buddy.pages8', '8'],
      ['buddy.pages64', '64'],
      ['buddy.pages512', '512'],
      ['buddy.pages1024', '1024'],
      ['buddy.free_kb', 'all of it'],
    ),
    split: { label: 'each zone', layers: [each('buddy.free_kb')] },
  },
  {
    of: 'numa',
    id: 'numa',
    title: 'Memory of NUMA nodes',
    layers: [each('numa.used', 'used'), each('numa.free', 'free')],
  },
  {
    of: 'numa',
    id: 'numapages',
    title: 'Pages taken of NUMA nodes',
    layers: [each('numa.hits', 'hits'), each('numa.misses', 'misses'), each('numa.foreign', 'foreign')],
  },
  {
    of: 'nfs',
    id: 'nfsclient',
    title: 'NFS client',
    layers: lines(
      ['nfs.client_reads', 'reads'],
      ['nfs.client_writes', 'writes'],
      ['nfs.client_meta', 'meta'],
      ['nfs.client_commits', 'commits'],
      ['nfs.client_retransmits', 'sent again'],
    ),
    known,
  },
  {
    of: 'nfs',
    id: 'nfsserver',
    title: 'NFS server',
    layers: lines(
      ['nfs.server_reads', 'reads'],
      ['nfs.server_writes', 'writes'],
      ['nfs.server_meta', 'meta'],
      ['nfs.server_commits', 'commits'],
      ['nfs.server_bad_auth', 'refused'],
    ),
    known,
  },
  {
    of: 'nfs_mounts',
    id: 'nfsmountoperations',
    title: 'NFS mounts: operations',
    scanned: true,
    known: { most: 12 },
    layers: [each('nfs_mounts.ops'), each('nfs_mounts.retransmits', 'sent again')],
  },
  {
    of: 'nfs_mounts',
    id: 'nfsmountbytes',
    title: 'NFS mounts: read and written',
    scanned: true,
    known: { most: 12 },
    layers: [each('nfs_mounts.read_kb', 'read'), each('nfs_mounts.write_kb', 'written')],
  },
  {
    of: 'nfs_mounts',
    id: 'nfsmounttimes',
    title: 'NFS mounts: time of an operation',
    scanned: true,
    known: { most: 12 },
    layers: [each('nfs_mounts.rtt_ms', 'on the way'), each('nfs_mounts.exe_ms', 'in all')],
  },
  {
    of: 'infiniband',
    id: 'infiniband',
    title: 'InfiniBand',
    layers: lines(['infiniband.rx_kb', 'received'], ['infiniband.tx_kb', 'sent']),
    split: { label: 'each port', layers: [each('infiniband.rx_kb', 'received'), each('infiniband.tx_kb', 'sent')] },
  },
  {
    of: 'infiniband',
    id: 'infinibandpackets',
    title: 'InfiniBand packets and errors',
    layers: lines(
      ['infiniband.rx_packets', 'received'],
      ['infiniband.tx_packets', 'sent'],
      ['infiniband.errors', 'errors'],
    ),
    split: {
      label: 'each port',
      layers: [
        each('infiniband.rx_packets', 'received'),
        each('infiniband.tx_packets', 'sent'),
        each('infiniband.errors', 'errors'),
      ],
    },
  },
  { of: 'sensors', id: 'temperatures', title: 'Temperatures', scanned: true, known, layers: [each('sensors.celsius')] },
  { of: 'sensors', id: 'fans', title: 'Fans', scanned: true, known, layers: [each('sensors.rpm')] },
  { of: 'sensors', id: 'power', title: 'Power', scanned: true, known, layers: [each('sensors.watts')] },
  { of: 'sensors', id: 'clocks', title: 'Clocks of CPUs', scanned: true, known, layers: [each('sensors.mhz')] },
  {
    of: 'filesystems',
    id: 'inodes',
    title: 'File systems: inodes used',
    most: 100,
    scanned: true,
    known: { most: 12 },
    layers: [each('filesystems.files_percent')],
  },
  {
    of: 'slab',
    id: 'slabs',
    title: 'Slabs',
    note: 'the largest',
    scanned: true,
    known: { most: 8 },
    layers: [each('slab.slabs_bytes')],
  },
  {
    of: 'kymo',
    id: 'kymo',
    title: 'kymo itself',
    layers: lines(['kymo.cpu', 'CPU'], ['kymo.rss_kb', 'memory']),
  },
];

// Of control groups the sums, and what is drawn of each (`each`: column and label) where it may be seen.
export const GROUPS = [
  {
    id: 'groupcpu',
    title: 'Control groups: CPU',
    known,
    layers: lines(['cgroups.cpu', 'all'], ['cgroups.throttled', 'kept from running']),
    each: [['cpu']],
  },
  {
    id: 'groupmemory',
    title: 'Control groups: memory',
    known,
    layers: lines(
      ['cgroups.memory_kb', 'all'],
      ['cgroups.anon_kb', 'of no file'],
      ['cgroups.file_kb', 'of files'],
      ['cgroups.swap_kb', 'swapped out'],
    ),
    each: [['memory_kb']],
  },
  {
    id: 'groupio',
    title: 'Control groups: disks',
    known,
    layers: lines(['cgroups.read_kb', 'read'], ['cgroups.write_kb', 'written']),
    each: [
      ['read_kb', 'read'],
      ['write_kb', 'written'],
    ],
  },
  {
    id: 'grouppressure',
    title: 'Control groups: pressure',
    note: 'the greatest of any',
    least: 5,
    known: { most: 12 },
    layers: lines(['cgroups.cpu_some', 'CPU'], ['cgroups.memory_some', 'memory'], ['cgroups.io_some', 'I/O']),
    each: [
      ['cpu_some', 'CPU'],
      ['memory_some', 'memory'],
      ['io_some', 'I/O'],
    ],
  },
  {
    id: 'grouptasks',
    title: 'Control groups: processes and threads',
    known,
    layers: lines(['cgroups.pids', 'all']),
    each: [['pids']],
  },
];
