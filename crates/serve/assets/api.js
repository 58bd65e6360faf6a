// The HTTP API: docs/http-api.md. Knows the token, knows nothing of what is shown.

const KEPT = 'kymo.token';
/** Fields of one question, and bytes of their names in its address. */
const FIELDS_MAX = 500;
const ADDRESS_MAX = 6000;
const COMMA_BYTES = 3;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Ids as one parameter: a comma or percent sign within a name is encoded once more, as the list is cut at commas. */
export const joinFields = (ids) => ids.map((id) => id.replace(/%/g, '%25').replace(/,/g, '%2C')).join(',');

/** Fields of one question each: a reverse proxy takes an address of some 8,000 bytes. */
export function slices(ids) {
  const parts = [[]];
  let bytes = 0;
  for (const id of ids) {
    const size = encodeURIComponent(id).length + COMMA_BYTES;
    if (parts.at(-1).length && (bytes + size > ADDRESS_MAX || parts.at(-1).length >= FIELDS_MAX)) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1).push(id);
    bytes += size;
  }
  return parts;
}

export function query(parameters) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null || value === '') continue;
    search.set(name, Array.isArray(value) ? joinFields(value) : String(value));
  }
  const text = search.toString();
  return text ? `?${text}` : '';
}

export function createApi(store = localStorage) {
  let token = store.getItem(KEPT);
  const keep = (value) => {
    token = value;
    if (value) store.setItem(KEPT, value);
    else store.removeItem(KEPT);
  };

  async function ask(address, given) {
    const sent = token;
    const headers = { ...given.headers, ...(sent ? { Authorization: `Bearer ${sent}` } : {}) };
    const response = await fetch(address, { ...given, headers, cache: 'no-store' });
    if (response.ok) return response;
    // a token of a server that has ended: go on without it rather than see nothing
    if (response.status === 401 && sent && sent === token) keep(null);
    // refused for a token that is no longer the one: a late answer must not take away the one that came meanwhile
    if (response.status === 401 && sent !== token) return ask(address, given);
    throw new ApiError(response.status, await reason(response));
  }

  const open = (path, parameters = {}, signal) => ask(`./kymo/v1/${path}${query(parameters)}`, { signal });

  const put = (path, value) =>
    ask(`./kymo/v1/${path}`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(value),
    });

  const remove = (path) => ask(`./kymo/v1/${path}`, { method: 'DELETE' });

  /** Prometheus' API (docs/prometheus.md). Expressions are sent as forms: they may be long. */
  async function prometheus(path, parameters, signal) {
    const form = new URLSearchParams(parameters);
    const response = parameters.query
      ? await ask(`./api/v1/${path}`, { method: 'POST', body: form, signal })
      : await ask(`./api/v1/${path}?${form}`, { signal });
    return response.json();
  }

  async function session(given) {
    const response = await fetch('./kymo/v1/session', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(given),
    });
    if (!response.ok) throw new ApiError(response.status, await reason(response));
    keep((await response.json()).token);
  }

  return {
    open,
    put,
    remove,
    prometheus,
    session,
    get: async (...asked) => (await open(...asked)).json(),
    forget: () => keep(null),
    hasToken: () => Boolean(token),
  };
}

async function reason(response) {
  const answer = await response.json().catch(() => null);
  return answer?.error ?? `the server answered ${response.status}`;
}

/** Takes the one-time code out of the address before anything else can see it. */
export function takeCode(location, history) {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code) history.replaceState(history.state, '', location.pathname + location.search);
  return code;
}
