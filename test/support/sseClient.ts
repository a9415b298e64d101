import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';

/** One event as it came: `id` is the chunk's number in its turn, absent on the last event, `[DONE]`. */
export interface StreamEvent {
  id: number | undefined;
  data: string;
}

export interface EventStream {
  response: Response;
  /** Events in order. Ends with the response; throws when the connection breaks off. Read it once. */
  events: AsyncIterable<StreamEvent>;
  /** Every byte read so far. */
  raw(): Buffer;
  /** Breaks off, as a client that goes away. */
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

/** Breaks off all streams that this process has open, so that none keeps it alive. */
export function abortStreams(): void {
  for (const abort of open) abort.abort();
  open.clear();
}

/**
 * Asks for an event stream. Nothing is read until `events` is. An answer that is not a stream is returned as it is,
 * with its status.
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
  // Bytes, not text: an event may be cut in the middle of a character.
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

/** Comments and `retry:` are no events. */
function parseEvent(text: string): StreamEvent | undefined {
  let id: number | undefined;
  const data: string[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) id = Number(line.slice(4));
    else if (line.startsWith('data: ')) data.push(line.slice(6));
  }
  return data.length === 0 ? undefined : { id, data: data.join('\n') };
}

/** What came of a stream. */
export interface Collected {
  events: StreamEvent[];
  /** The chunks, without `[DONE]`. */
  chunks: UiChunk[];
  /** The texts of all text parts that no later attempt has discarded, joined. */
  text: string;
  /** The number of the last chunk; 0 when there was none. */
  lastId: number;
  /** Whether `[DONE]` came. */
  complete: boolean;
}

/**
 * Reads a stream to its end, however it ends, or until `enough` says so of what came so far; the connection stays open
 * then. A later call with the same stream goes on where this one stopped.
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
      return collected; // broken off
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

/** The first event that fits; the stream stays open. Fails when it ends without. */
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
