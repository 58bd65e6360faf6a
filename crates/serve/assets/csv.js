// CSV of what is seen. A cell that a spreadsheet would take for a formula gets an apostrophe before it.
import { save } from './dom.js';
import { timeAt } from './frame.js';

export function cell(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csv = (rows) => rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';

export const csvFile = (name, content) => save(new Blob([content], { type: 'text/csv;charset=utf-8' }), name);

/** A frame's fields within a range, in recorded units; minimum and maximum where a point has several values. */
export function frameRows(frame, from, thru) {
  const columns = [];
  for (const { id, unit, avg, min, max } of frame.fields.values()) {
    const name = unit ? `${id} [${unit}]` : id;
    columns.push([name, avg]);
    if (min) columns.push([`${name} min`, min], [`${name} max`, max]);
  }
  const rows = [['time', 'time (UTC)', ...columns.map(([name]) => name)]];
  for (let n = 0; n < frame.count; n++) {
    const time = timeAt(frame, n);
    if (time < from || time > thru) continue;
    rows.push([time, new Date(time * 1000).toISOString(), ...columns.map(([, values]) => values[n])]);
  }
  return rows;
}
