// The live stream: server-sent events over fetch, because EventSource cannot carry a token.

const PAUSES_MS = [300, 1000, 2000, 5000, 10000];
// a comment comes every 15 s; two of them missed is a dead connection
const SILENCE_MS = 35000;

/** Cuts a stream of text into events; `feed` gives those that are complete. */
export function eventParser() {
  let rest = '';
  return function feed(chunk) {
    rest = (rest + chunk).replace(/\r\n/g, '\n');
    const blocks = rest.split('\n\n');
    rest = blocks.pop();
    return blocks.map(parseBlock).filter(Boolean);
  };
}

function parseBlock(block) {
  let kind = 'message';
  const lines = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) kind = line.slice(6).trim();
    else if (line.startsWith('data:')) lines.push(line.slice(5).replace(/^ /, ''));
  }
  return lines.length ? { kind, text: lines.join('\n') } : null;
}

/**
 * Follows the stream until closed, whatever happens to the connection.
 * `on`: sample(sample), mark(mark), up(), down(error), none() where there is nothing live.
 */
export function follow(api, fields, on) {
  const stop = new AbortController();
  run(api, fields, on, stop.signal);
  return { close: () => stop.abort() };
}

async function run(api, fields, on, signal) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await read(
        api,
        fields,
        {
          ...on,
          up: () => {
            failures = 0;
            on.up();
          },
        },
        signal,
      );
      throw new Error('the stream ended');
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 404) return on.none();
      on.down(error);
    }
    await pause(PAUSES_MS[Math.min(failures++, PAUSES_MS.length - 1)], signal);
  }
}

async function read(api, fields, on, signal) {
  const silent = new AbortController();
  const quit = () => silent.abort();
  signal.addEventListener('abort', quit);
  let timer = setTimeout(quit, SILENCE_MS);
  try {
    const response = await api.open('live', { fields }, silent.signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const feed = eventParser();
    on.up();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(quit, SILENCE_MS);
      for (const event of feed(value)) deliver(event, on);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', quit);
  }
}

function deliver({ kind, text }, on) {
  if (kind === 'sample') on.sample(JSON.parse(text));
  else if (kind === 'mark') on.mark(JSON.parse(text));
}

function pause(length_ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, length_ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        done();
      },
      { once: true },
    );
  });
}
