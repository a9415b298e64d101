import type { UIMessageChunk } from 'ai';
import { type Connection, request } from './connection.ts';
import { AtriumError } from './errors.ts';
import { type ServerEvent, serverEvents } from './serverEvents.ts';

/**
 * The server sends something every 15 seconds. A connection that is silent for this long is dead, even if it looks
 * open.
 */
const silenceMs = 45_000;
const firstDelayMs = 250;
const longestDelayMs = 10_000;

export interface TurnStreamOptions {
  /** How long to keep trying without an answer from the server. */
  giveUpAfterMs: number;
  signal: AbortSignal;
}

/**
 * Yields a turn's chunks, from its first response to its end. After a broken connection it continues after the last
 * chunk received, so none is lost or repeated.
 */
export async function* turnChunks(
  connection: Connection,
  first: Response,
  options: TurnStreamOptions,
): AsyncGenerator<UIMessageChunk> {
  const path = `/chat/turns/${first.headers.get('x-turn-id') ?? ''}/stream`;
  let response = first;
  let lastId: string | undefined;
  for (;;) {
    for await (const { id, data } of untilBroken(response, options.signal)) {
      if (data === '[DONE]') return;
      lastId = id ?? lastId;
      yield JSON.parse(data) as UIMessageChunk;
    }
    options.signal.throwIfAborted();
    const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) };
    response = await persistently(() => request(connection, path, { headers, signal: options.signal }), options);
  }
}

/**
 * Retries until a request succeeds. Throws {@link AtriumError} at a permanent refusal, or the last failure after
 * `giveUpAfterMs`.
 */
export async function persistently(ask: () => Promise<Response>, options: TurnStreamOptions): Promise<Response> {
  const giveUpAt = Date.now() + options.giveUpAfterMs;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, longestDelayMs)) {
    const outcome = await ask().catch((error: unknown) => ({ error }));
    options.signal.throwIfAborted();
    if (outcome instanceof Response && outcome.ok) return outcome;
    const failure = outcome instanceof Response ? await AtriumError.of(outcome) : outcome.error;
    if (failure instanceof AtriumError && !mayPass(failure.status)) throw failure;
    if (Date.now() + delayMs > giveUpAt) throw failure;
    const askedMs = outcome instanceof Response ? Number(outcome.headers.get('retry-after') ?? 0) * 1_000 : 0;
    await pause(Math.max(askedMs || 0, delayMs * (0.75 + Math.random() / 2)), options.signal);
  }
}

function mayPass(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}

/** Yields events until the response breaks off or goes silent, without throwing. */
async function* untilBroken(response: Response, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  if (response.body === null) return;
  const silence = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), silenceMs);
  };
  const piped = new TransformStream<Uint8Array, Uint8Array>();
  const ended = AbortSignal.any([silence.signal, signal]);
  response.body.pipeTo(piped.writable, { signal: ended }).catch(() => undefined);
  heard();
  try {
    yield* serverEvents(piped.readable, heard);
  } catch {
    // The next request will report the reason.
  } finally {
    clearTimeout(timer);
  }
}

function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, delayMs);
    signal.addEventListener('abort', stop, { once: true });
  });
}
