import type { Request, Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { type Gap, isOutput, noteOf, positionAfter } from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import { callerOf } from '../../frame/auth/caller.ts';
import { goneOf } from '../../frame/goneOf.ts';
import { drained } from '../../frame/sse.ts';
import { inTurn } from './inTurn.ts';
import type { AttemptMark, ShownRecord } from './streamOutput.ts';

const events = 'text/event-stream';

/** Sends the stored output up to `outputBytes` as text. */
export async function sendText(
  req: Request,
  res: Response,
  outputBytes: number,
  open: (signal: AbortSignal) => AsyncIterable<ShownRecord>,
): Promise<void> {
  const { userId } = callerOf(req);
  const gone = goneOf(res);
  res.set({ 'content-type': 'text/plain; charset=utf-8', 'x-output-position': String(outputBytes) });
  try {
    for await (const record of inTurn(open(gone), { userId, signal: gone })) {
      // Later output is for the next request.
      if (record.position >= outputBytes) break;
      if (record.kind === 'attempt')
        res.write(`\n[attempt ${record.attempt}, after the one before ${howEnded(record)}]\n`);
      else if (isOutput(record.kind)) res.write(record.payload.subarray(0, outputBytes - record.position));
      else if (record.kind === 'gap') res.write(`\n[${noteOf<Gap>(record).droppedBytes} bytes were dropped here]\n`);
      await drained(res);
      if (record.kind === 'attempt') continue;
      if (positionAfter(record) >= outputBytes) break;
    }
    res.end();
  } catch (error) {
    if (!res.headersSent) throw error;
    // Cut the answer, so that the reader sees that it is incomplete.
    res.destroy();
  }
}

function howEnded({ after: { exitCode, signal, error } }: AttemptMark): string {
  if (signal !== null) return `was ended by ${signal}`;
  return exitCode === null ? `failed by ${error?.code}` : `ended with exit code ${exitCode}`;
}

export function wantsEvents(req: Request): boolean {
  return req.accepts(['application/json', 'text/plain', events]) === events;
}

/** The browser sends the header when it reconnects, so it is newer than the parameter. */
export function afterOf(req: Request, after = 0): number {
  const last = req.get('last-event-id');
  return last === undefined ? after : Number(last);
}

export function positionUnknown(): DomainError {
  return new DomainError('invalid', 'POSITION_UNKNOWN', 'This position is beyond the end of the output.');
}

/** The part of a record that comes after a position. */
export function recordFrom(record: OutputRecord, after: number): OutputRecord {
  const { kind, position, payload } = record;
  if (!isOutput(kind) || position >= after) return record;
  return { kind, position: after, payload: payload.subarray(after - position) };
}
