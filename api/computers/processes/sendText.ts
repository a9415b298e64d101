import type { Request, Response } from 'express';
import { type Gap, isOutput, noteOf, positionAfter } from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import { DomainError } from '../../../models/errors.ts';
import { goneOf } from '../../frame/goneOf.ts';
import { drained } from '../../frame/sse.ts';

const events = 'text/event-stream';

/** What is kept now, as it was put out: the first `outputBytes` of it. */
export async function sendText(
  res: Response,
  outputBytes: number,
  open: (signal: AbortSignal) => AsyncIterable<OutputRecord>,
): Promise<void> {
  const gone = goneOf(res);
  res.set({ 'content-type': 'text/plain; charset=utf-8', 'x-output-position': String(outputBytes) });
  try {
    for await (const record of open(gone)) {
      // What came since the position was told is for the next request.
      if (record.position >= outputBytes) break;
      const { kind, position, payload } = record;
      if (isOutput(kind)) res.write(payload.subarray(0, outputBytes - position));
      else if (kind === 'gap') res.write(`\n[${noteOf<Gap>(record).droppedBytes} bytes were dropped here]\n`);
      await drained(res);
      if (positionAfter(record) >= outputBytes) break;
    }
    res.end();
  } catch (error) {
    if (!res.headersSent) throw error;
    // The reader must see that this is not all.
    res.destroy();
  }
}

export function wantsEvents(req: Request): boolean {
  return req.accepts(['application/json', 'text/plain', events]) === events;
}

/** The header is the browser’s own when it connects again, so it is the newer one. */
export function afterOf(req: Request, after = 0): number {
  const last = req.get('last-event-id');
  return last === undefined ? after : Number(last);
}

export function positionUnknown(): DomainError {
  return new DomainError('invalid', 'POSITION_UNKNOWN', 'The process has not put out so much.');
}
