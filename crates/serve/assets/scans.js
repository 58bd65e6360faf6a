// Process tables by moment. The cursor moves faster than a server answers: one question at a time, the last one
// wins, and a moment within a scan that is known is not asked for again.
import { rowsOf } from './rows.js';

const KEPT = 24;

export function createScans(api) {
  let known = [];
  return {
    /** The scan that covers a moment; null is the newest. */
    async at(moment, signal, over) {
      const kept = known;
      const found = kept.find((scan) => scan.over === over && covers(scan, moment));
      if (found) return found;
      const answer = await api.get('processes', { at: moment ?? 'now', over }, signal);
      const scan = { ...answer, over, rows: rowsOf(answer) };
      // into the list of when it was asked for: what is forgotten stays so
      if (!scan.last) kept.unshift(scan);
      kept.length = Math.min(kept.length, KEPT);
      return scan;
    },
    forget: () => {
      known = [];
    },
  };
}

export const covers = (scan, moment) =>
  moment !== null && moment <= scan.at && scan.previous !== null && moment > scan.previous;

/** Runs only the last of what is asked: at most one is under way, and the one before is aborted. */
export function lastWins(run, pause_ms = 60) {
  let stop = null,
    timer = 0,
    begun = 0;
  return (...asked) => {
    clearTimeout(timer);
    const wait = Math.max(0, begun + pause_ms - performance.now());
    timer = setTimeout(async () => {
      stop?.abort();
      stop = new AbortController();
      begun = performance.now();
      const { signal } = stop;
      try {
        await run(signal, ...asked);
      } catch (error) {
        if (error.name !== 'AbortError') throw error;
      }
    }, wait);
  };
}
