import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';

/** An event as received. `id` is the chunk's number in its turn; the last event, `[DONE]`, has none. */
export interface StreamEvent {
  id: number | undefined;
  data: string;
}

export interface EventStream {
  response: Response;
  /** Events in order. Ends with the response, and throws if the connection breaks. Can be read once. */
  events: AsyncIterable<StreamEvent>;
  /** All bytes read so far. */
  raw(): Buffer;
  /** Breaks the connection, like a client that goes away. */
  abort(): void;
}

export interface StreamRequest {
  token?: string;
  method?: 'GET' | 'POST';
  body?: unknown;
  lastEventId?: number | string;
  headers?: Record<string, string>;
}

const open = new Set<AbortController>();

/** Aborts all open streams of this process, so that they do not keep it alive. */
export function abortStreams(): void {
  for (const abort of open) abort.abort();
  open.clear();
}

/**
 * Requests an event stream. Reading starts with `events`. A response that is no stream is returned too, with its
 * status.
 */
export async function openStream(url: string, request: StreamRequest = {}): Promise<EventStream> {
  const abort = new AbortController();
  open.add(abort);
  const { token, body, lastEventId } = request;
  const response = await fetch(url, {
    method: request.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(lastEventId !== undefined && { 'last-event-id': String(lastEventId) }),
      ...request.headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: abort.signal,
  });
  const chunks: Buffer[] = [];
  return {
    response,
    events: parseEvents(response, chunks),
    raw: () => Buffer.concat(chunks),
    abort: () => abort.abort(),
  };
}

async function* parseEvents(response: Response, chunks: Buffer[]): AsyncGenerator<StreamEvent> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  // Works on bytes, since a read may end in the middle of a character.
  let rest = Buffer.alloc(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const bytes = Buffer.from(value);
    chunks.push(bytes);
    rest = Buffer.concat([rest, bytes]);
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const event = parseEvent(rest.subarray(0, end).toString('utf8'));
      rest = rest.subarray(end + 2);
      if (event !== undefined) yield event;
    }
  }
}

/** Returns undefined for comments and `retry:`. */
function parseEvent(text: string): StreamEvent | undefined {
  let id: number | undefined;
  const data: string[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) id = Number(line.slice(4));
    else if (line.startsWith('data: ')) data.push(line.slice(6));
  }
  return data.length === 0 ? undefined : { id, data: data.join('\n') };
}

/** The contents of a stream. */
export interface Collected {
  events: StreamEvent[];
  /** Without `[DONE]`. */
  chunks: UiChunk[];
  /** The joined text of all parts that no later attempt has discarded. */
  text: string;
  /** The number of the last chunk, 0 if there was none. */
  lastId: number;
  /** Whether `[DONE]` arrived. */
  complete: boolean;
}

/**
 * Reads a stream until it ends or breaks, or until `enough` accepts the contents so far. Then the connection stays
 * open, and a later call with the same stream continues.
 */
export async function collect(stream: EventStream, enough?: (sofar: Collected) => boolean): Promise<Collected> {
  const collected: Collected = { events: [], chunks: [], text: '', lastId: 0, complete: false };
  const texts = new Map<string, string>();
  const iterator = stream.events[Symbol.asyncIterator]();
  for (;;) {
    let next: IteratorResult<StreamEvent>;
    try {
      next = await iterator.next();
    } catch {
      return collected; // the connection broke
    }
    if (next.done) return collected;
    const event = next.value;
    collected.events.push(event);
    if (event.data === '[DONE]') {
      collected.complete = true;
    } else {
      const chunk = JSON.parse(event.data) as UiChunk;
      collected.chunks.push(chunk);
      collected.lastId = event.id ?? collected.lastId;
      addText(texts, chunk);
      collected.text = [...texts.values()].join('');
    }
    if (enough?.(collected)) return collected;
  }
}

function addText(texts: Map<string, string>, chunk: UiChunk): void {
  if (chunk.type === 'text-start') texts.set(chunk.id, '');
  if (chunk.type === 'text-delta') texts.set(chunk.id, (texts.get(chunk.id) ?? '') + chunk.delta);
  if (chunk.type === 'data-attempt') for (const id of chunk.data.discard) texts.delete(id);
}

/** Reads up to the first matching chunk. The stream stays open. Throws if it ends before. */
export async function untilChunk(stream: EventStream, fits: (chunk: UiChunk) => boolean): Promise<Collected> {
  const collected = await collect(stream, ({ chunks }) => {
    const last = chunks.at(-1);
    return last !== undefined && fits(last);
  });
  const last = collected.chunks.at(-1);
  if (last === undefined || !fits(last)) {
    throw new Error(
      `The stream ended without the chunk; it had ${collected.chunks.map(({ type }) => type).join(' ')}.`,
    );
  }
  return collected;
}
