// Expressions that were asked before, kept in this browser, the newest first.

const KEPT = 'kymo.expressions';
const MOST = 50;
/** A longer one is not kept. */
const BYTES_MOST = 4000;

export function kept(store = localStorage) {
  try {
    const known = JSON.parse(store.getItem(KEPT));
    return Array.isArray(known) ? known.filter((each) => typeof each === 'string').slice(0, MOST) : [];
  } catch {
    // somebody else's writing
    return [];
  }
}

export function keep(expr, store = localStorage) {
  if (!expr || expr.length > BYTES_MOST) return;
  const others = kept(store).filter((each) => each !== expr);
  store.setItem(KEPT, JSON.stringify([expr, ...others].slice(0, MOST)));
}

export const forget = (store = localStorage) => store.removeItem(KEPT);
