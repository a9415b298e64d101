import type { Request, Response } from 'express';
import type { Role } from '../../../models/identity/tables.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { drained, eventStreamHeaders } from '../../frame/sse.ts';
import { stillAllowed } from '../../frame/stillAllowed.ts';
import { event, OutputEvents, type ShownRecord } from './outputEvents.ts';

const reconnectAfterMs = 1_000;

export interface OutputSource {
  /** What it has put out and puts out, up to its end. */
  open(signal: AbortSignal): AsyncIterable<ShownRecord>;
  /** Of the process that is named first, where its reader does not know it. */
  processId?: string;
  /** Whose members may read it, where the path does not name the space. */
  spaceId?: string;
  /** Which role they must have; that of the operation without it. */
  role?: Role | undefined;
}

/**
 * Streams the output of a process that is known, as events until its end, or until the reader leaves, or may no longer
 * read. A slow reader is waited for: nothing is read ahead of it.
 */
export async function streamOutput(
  { identity, config, closing }: Pick<RouteDeps, 'identity' | 'config' | 'closing'>,
  req: Request,
  res: Response,
  { open, processId, spaceId, role }: OutputSource,
): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort();
  const isAllowed = stillAllowed({ identity }, req, spaceId, role);
  const { heartbeatMs, authorizationMs } = config.chat.streams;
  const timers = [
    setInterval(() => res.write(': hb\n\n'), heartbeatMs),
    // A database that is down for a moment does not end streams: the next check decides.
    setInterval(
      () =>
        void isAllowed().then(
          (said) => said === 'yes' || end(),
          () => undefined,
        ),
      authorizationMs,
    ),
  ];
  res.once('close', end);
  closing.addEventListener('abort', end);
  try {
    const events = new OutputEvents();
    const records = open(over.signal);
    res.writeHead(200, eventStreamHeaders);
    res.write(`retry: ${reconnectAfterMs}\n\n`);
    if (processId !== undefined) res.write(event('process', undefined, { processId }));
    for await (const record of records) {
      const text = events.push(record);
      if (text !== '' && !res.write(text)) await drained(res);
    }
    res.end();
  } catch (error) {
    if (!over.signal.aborted)
      req.log.warn({ err: loggable(error), requestId: req.id }, 'A stream of output broke off.');
    // Without an `exit` its client connects again.
    res.end();
  } finally {
    for (const timer of timers) clearInterval(timer);
    closing.removeEventListener('abort', end);
    over.abort();
  }
}
