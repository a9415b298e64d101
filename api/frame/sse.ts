import type { Response } from 'express';
import type { Config } from '../../config/index.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import type { TurnFeed, TurnReader } from '../../models/chat/turnLog/feed.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Meters } from '../../telemetry/meters.ts';
import { whenClosed } from './goneOf.ts';

/** A client that is this far behind is cut off, so memory does not fill up. It resumes a turn from its last id. */
export const maxBacklogBytes = 1024 * 1024;
const reconnectAfterMs = 1_000;

export interface TurnStream {
  turnId: string;
  threadId: string;
  /** The stream begins strictly after this chunk. */
  after: number;
  /** The log's first chunks, when this request has just begun the turn. They need not be read from the log. */
  opening?: UiChunk[];
  feed: TurnFeed;
  intervals: Config['chat']['streams'];
  logger: Logger;
  meters: Pick<Meters, 'streamOpened'>;
  /** Aborted when the server begins to close. */
  closing: AbortSignal;
  /** Called with the number of the last chunk once the client has received everything. */
  onRead?(seq: number): void;
  /** Whether the client may still read. Asked every few seconds. */
  isAllowed(): Promise<boolean>;
}

/** For every event stream. Keeps proxies from buffering it. */
export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** The headers of every turn stream: the AI SDK UI Message Stream, version 1. */
export function openEventStream(res: Response, ids: { turnId: string; threadId: string }): void {
  res.writeHead(200, {
    ...eventStreamHeaders,
    'x-vercel-ai-ui-message-stream': 'v1',
    'x-turn-id': ids.turnId,
    'x-thread-id': ids.threadId,
  });
  res.write(`retry: ${reconnectAfterMs}\n\n`);
}

/** Events for chunks numbered from `firstSeq`; their JSON goes out as it stands in the log, byte for byte. */
export function formatEvents(firstSeq: number, lines: string[]): string {
  let events = '';
  for (const [index, line] of lines.entries()) events += `id: ${firstSeq + index}\ndata: ${line}\n\n`;
  return events;
}

/** The last event of a complete response. A client resumes a response that ends without it. */
export const doneEvent = 'data: [DONE]\n\n';

/** Streams a turn's log until it ends, or the client leaves, falls too far behind, or may no longer read. */
export function streamTurn(res: Response, stream: TurnStream): void {
  openEventStream(res, stream);
  whenClosed(res, stream.meters.streamOpened());
  const { opening = [] } = stream;
  if (opening.length > 0)
    res.write(
      formatEvents(
        1,
        opening.map((chunk) => JSON.stringify(chunk)),
      ),
    );
  const timers = [
    setInterval(() => res.write(': hb\n\n'), stream.intervals.heartbeatMs),
    setInterval(() => void leaveUnlessAllowed(), stream.intervals.authorizationMs),
  ];

  let lastSeq = stream.after + opening.length;
  const reader: TurnReader = {
    onChunks(firstSeq, lines) {
      // Checked before the write, so that no chunk is too large for a client that has kept up.
      lastSeq = firstSeq + lines.length - 1;
      if (res.writableLength > maxBacklogBytes) res.destroy();
      else res.write(formatEvents(firstSeq, lines));
    },
    ready: () => drained(res),
    onEnd() {
      leave();
      res.end(doneEvent, () => stream.onRead?.(lastSeq));
    },
    onError(error) {
      stream.logger.warn({ err: error, turnId: stream.turnId }, 'A stream broke off; its client may resume.');
      res.destroy();
    },
  };
  const unsubscribe = stream.feed.subscribe(stream.turnId, stream.after + opening.length, reader, {
    caughtUp: opening.length > 0,
  });

  function leave(): void {
    unsubscribe();
    stream.closing.removeEventListener('abort', breakOff);
    for (const timer of timers) clearInterval(timer);
  }
  function breakOff(): void {
    leave();
    res.end();
  }
  async function leaveUnlessAllowed(): Promise<void> {
    // A database that is briefly down ends no stream: the next check decides.
    if (!(await stream.isAllowed().catch(() => true))) breakOff();
  }
  stream.closing.addEventListener('abort', breakOff);
  whenClosed(res, leave);
}

/**
 * Resolves when the written bytes are on their way or the client has gone. `SlowClients` cuts off a client that takes
 * nothing.
 */
export function drained(res: Response): Promise<void> {
  if (!res.writableNeedDrain || res.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    function settle(): void {
      res.off('drain', settle).off('close', settle);
      resolve();
    }
    res.once('drain', settle).once('close', settle);
  });
}
