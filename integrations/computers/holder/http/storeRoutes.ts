import type { IncomingMessage, ServerResponse } from 'node:http';
import { orAfter } from '../../../../base/async.ts';
import { readLog } from '../../processes/logReader.ts';
import type { ProcessStore } from '../../processes/processStore.ts';
import { heartbeat } from '../../processes/records.ts';
import { flagOf, numberOf, type Route, send } from './answers.ts';

const heartbeatMs = 10_000;
/** A reader that reads nothing for this long is cut. It can reconnect at the position that it has reached. */
const stallMs = 30_000;

/**
 * Reads of processes, which work whether or not the computer runs: `GET /processes`, `/processes/{id}` and its
 * `/output`. Undefined for other requests.
 */
export function storeRoute(
  store: ProcessStore,
  req: IncomingMessage,
  res: ServerResponse,
  route: Route,
): Promise<void> | undefined {
  const [first, processId, what, more] = route.path;
  if (req.method !== 'GET' || first !== 'processes' || more !== undefined) return undefined;
  if (processId === undefined) return store.list().then((processes) => send(res, 200, { processes }));
  if (what === undefined) return store.info(processId).then((info) => send(res, 200, info));
  return what === 'output' ? sendOutput(store, processId, res, route) : undefined;
}

async function sendOutput(store: ProcessStore, processId: string, res: ServerResponse, route: Route): Promise<void> {
  const log = await store.log(processId);
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  const request = { after: numberOf(route, 'after') ?? 0, follow: flagOf(route, 'follow'), signal: gone.signal };
  const pieces = readLog(log, request);
  // Wait for the first piece, so that a refusal comes before the response begins. If none comes soon, send the headers
  // without it.
  let next = pieces.next();
  const first = await orAfter(next, 20, undefined);
  res.writeHead(200, { 'content-type': 'application/octet-stream' });
  if (first === undefined) res.flushHeaders();
  const timer = setInterval(() => res.writableLength === 0 && res.write(heartbeat), heartbeatMs);
  try {
    for (let piece = await next; piece.done !== true; piece = await next) {
      if (!res.write(piece.value)) await drained(res, gone.signal);
      next = pieces.next();
    }
    res.end();
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  } finally {
    clearInterval(timer);
    await pieces.return(undefined);
  }
}

/** Settles when the reader has taken the buffered bytes. Cuts a reader that does not within `stallMs`. */
function drained(res: ServerResponse, gone: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => res.destroy(), stallMs);
    const settle = () => {
      clearTimeout(timer);
      res.off('drain', settle);
      gone.removeEventListener('abort', settle);
      if (gone.aborted) reject(gone.reason);
      else resolve();
    };
    res.once('drain', settle);
    gone.addEventListener('abort', settle, { once: true });
  });
}
