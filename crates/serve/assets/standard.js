// Made of crates/view/src/standard.rs. A test there says when this is stale: run it with UPDATE_GOLDEN=1.
export const STANDARD = {
  cpu: {
    most: 100,
    stacked: true,
    peak: 'cpu.total',
    layers: [
      { id: 'cpu.user', label: 'user', colour: 1 },
      { id: 'cpu.nice', label: 'nice', colour: 2 },
      { id: 'cpu.sys', label: 'system', colour: 3 },
      { id: 'cpu.irq', label: 'irq', colour: 4 },
      { id: 'cpu.soft', label: 'softirq', colour: 5 },
      { id: 'cpu.steal', label: 'steal', colour: 6 },
      { id: 'cpu.wait', label: 'wait', colour: 8 },
    ],
  },
  load: {
    least: 1,
    layers: [
      { id: 'cpu.running', label: 'runnable', colour: 6 },
      { id: 'cpu.blocked', label: 'blocked', colour: 3 },
      { id: 'cpu.load1', label: '1 min', colour: 1 },
      { id: 'cpu.load5', label: '5 min', colour: 2 },
      { id: 'cpu.load15', label: '15 min', colour: 4 },
    ],
  },
  pressure: {
    least: 5,
    layers: [
      { id: 'pressure.cpu_some', label: 'CPU', colour: 1 },
      { id: 'pressure.io_some', label: 'I/O', colour: 3 },
      { id: 'pressure.io_full', label: 'I/O, all', colour: 4 },
      { id: 'pressure.memory_some', label: 'memory', colour: 2 },
      { id: 'pressure.memory_full', label: 'memory, all', colour: 5 },
      { id: 'pressure.irq_full', label: 'irq', colour: 6 },
    ],
  },
  memory: {
    mostOf: 'memory.total',
    stacked: true,
    layers: [
      { id: 'memory.anon', label: 'programs', colour: 1 },
      { id: 'memory.slab', label: 'slab', colour: 4 },
      { id: 'memory.buffers', label: 'buffers', colour: 3 },
      { id: 'memory.cached', label: 'cached', colour: 2 },
    ],
  },
  disk: {
    least: 1,
    filled: true,
    layers: [
      { id: 'disk.read_kb', label: 'read', colour: 1 },
      { id: 'disk.write_kb', label: 'written', colour: 3 },
    ],
  },
  net: {
    least: 1,
    filled: true,
    layers: [
      { id: 'net.rx_kb', label: 'received', colour: 1 },
      { id: 'net.tx_kb', label: 'sent', colour: 3 },
    ],
  },
  tcp: {
    least: 1,
    layers: [
      { id: 'tcp.tcp_in', label: 'segments in', colour: 1 },
      { id: 'tcp.tcp_out', label: 'out', colour: 3 },
      { id: 'tcp.tcp_retransmitted', label: 'sent again', colour: 2 },
      { id: 'tcp.tcp_active_opens', label: 'connections begun', colour: 4 },
      { id: 'tcp.tcp_passive_opens', label: 'accepted', colour: 5 },
    ],
  },
  protocols: {
    least: 1,
    layers: [
      { id: 'tcp.ip_errors', label: 'IP', colour: 1 },
      { id: 'tcp.tcp_errors', label: 'TCP', colour: 2 },
      { id: 'tcp.udp_errors', label: 'UDP', colour: 3 },
      { id: 'tcp.icmp_errors', label: 'ICMP', colour: 4 },
      { id: 'tcp.ip6_errors', label: 'IPv6', colour: 5 },
    ],
  },
  sockets: {
    least: 1,
    layers: [
      { id: 'sockets.tcp', label: 'TCP', colour: 1 },
      { id: 'sockets.time_wait', label: 'TIME-WAIT', colour: 3 },
      { id: 'sockets.orphans', label: 'orphans', colour: 2 },
      { id: 'sockets.udp', label: 'UDP', colour: 4 },
      { id: 'sockets.tcp6', label: 'TCP, IPv6', colour: 5 },
      { id: 'sockets.udp6', label: 'UDP, IPv6', colour: 6 },
    ],
  },
  files: {
    least: 1,
    layers: [{ id: 'inodes.files', label: 'open files', colour: 1 }],
  },
  kernel: {
    least: 1,
    layers: [
      { id: 'cpu.ctxsw', label: 'context switches', colour: 1 },
      { id: 'cpu.intr', label: 'interrupts', colour: 3 },
      { id: 'cpu.forks', label: 'forks', colour: 2 },
      { id: 'memory.major_faults', label: 'major faults', colour: 4 },
    ],
  },
};
