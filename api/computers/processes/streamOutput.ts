import type { Request, Response } from 'express';
import { type TextPiece, TextPieces } from '../../../integrations/computers/output/textPieces.ts';
import {
  type Exit,
  type Gap,
  isOutput,
  noteOf,
  positionAfter,
  type Size,
} from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import type { Role } from '../../../models/identity/tables.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import { callerOf } from '../../frame/auth/caller.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { whenClosed } from '../../frame/goneOf.ts';
import { drained, eventStreamHeaders } from '../../frame/sse.ts';
import { stillAllowed } from '../../frame/stillAllowed.ts';
import { inTurn } from './inTurn.ts';

const reconnectAfterMs = 1_000;

interface OutputSource {
  /** The output so far and to come, up to the end. */
  open(signal: AbortSignal): AsyncIterable<ShownRecord>;
  /** An id to tell the reader first, if the reader does not know it. */
  processId?: string;
  /** The space whose members may read it, if the path does not name one. */
  spaceId?: string;
  /** The required role. Undefined: that of the operation. */
  role?: Role | undefined;
}

/**
 * Streams a process's output as events until it ends, the reader leaves, or the reader may no longer read. It never
 * reads ahead of a slow reader.
 */
export async function streamOutput(
  { identity, config, closing }: Pick<RouteDeps, 'identity' | 'config' | 'closing'>,
  req: Request,
  res: Response,
  { open, processId, spaceId, role }: OutputSource,
): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort();
  const { userId } = callerOf(req);
  const isAllowed = stillAllowed({ identity }, req, spaceId, role);
  const { heartbeatMs, authorizationMs } = config.chat.streams;
  const timers = [
    setInterval(() => res.write(': hb\n\n'), heartbeatMs),
    // A failed check ends no stream: the next one decides.
    setInterval(
      () =>
        void isAllowed().then(
          (said) => said === 'yes' || end(),
          () => undefined,
        ),
      authorizationMs,
    ),
  ];
  whenClosed(res, end);
  closing.addEventListener('abort', end);
  try {
    const events = new OutputEvents();
    const records = inTurn(open(over.signal), { userId, signal: over.signal });
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
    // Without an `exit` event the client reconnects.
    res.end();
  } finally {
    for (const timer of timers) clearInterval(timer);
    closing.removeEventListener('abort', end);
    over.abort();
  }
}

/** Marks in a retried run's log where the next attempt begins, and how the one before ended. */
export interface AttemptMark {
  kind: 'attempt';
  position: number;
  attempt: number;
  after: {
    status: string | null;
    exitCode: number | null;
    signal: string | null;
    error: { code: string; detail: string } | null;
  };
}

export type ShownRecord = OutputRecord | AttemptMark;

/**
 * Converts a process's output to server-sent events. The id of each is the position after it, so that a reader
 * continues exactly where it was cut.
 */
class OutputEvents {
  readonly #pieces = new TextPieces();
  #kind: ShownRecord['kind'] | undefined;

  /** The events that this record completes. */
  push(record: ShownRecord): string {
    const { kind, position } = record;
    let events = '';
    if (this.#kind !== kind) events += this.#asEvents(this.#pieces.rest());
    this.#kind = kind;
    if (record.kind === 'attempt') {
      const { attempt, after } = record;
      return events + event('attempt', position, { position, attempt, after });
    }
    const { payload } = record;
    if (isOutput(record.kind)) return events + this.#asEvents(this.#pieces.push(position, payload));
    return events + noteEvent(record);
  }

  #asEvents(pieces: readonly TextPiece[]): string {
    const stream = this.#kind;
    return pieces.map(({ position, end, content }) => event('output', end, { stream, position, ...content })).join('');
  }
}

function noteEvent(record: OutputRecord): string {
  const after = positionAfter(record);
  switch (record.kind) {
    case 'gap':
      return event('gap', after, { position: record.position, droppedBytes: noteOf<Gap>(record).droppedBytes });
    case 'resize': {
      const { cols, rows } = noteOf<Size>(record);
      return event('resize', after, { cols, rows });
    }
    default: {
      const { state, exitCode, signal, killedBy } = noteOf<Exit>(record);
      return event('exit', after, { state, exitCode, signal, killedBy });
    }
  }
}

/** One event. JSON contains no raw line feed. */
export function event(name: string, id: number | undefined, data: unknown): string {
  return `event: ${name}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}
