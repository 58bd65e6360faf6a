// For how long a value is shown: sources that are not read at each sample have an interval of their own, or that of the
// scans of processes.

/** A value is shown until the next read, and half an interval more. */
const TURNS = 1.5;
const SCAN_S = 60;

/** A function from a field's id to seconds; 0: the field has a value of its own in each sample. */
export const heldFor = (ctx, isScanned) => (id) => {
  const name = id.slice(0, id.indexOf('.'));
  const own = ctx.status?.own_intervals?.[name];
  if (own > 0) return own * TURNS;
  return isScanned(name) ? (ctx.status?.scan_interval ?? SCAN_S) * TURNS : 0;
};
