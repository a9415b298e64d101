import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import { Places } from '../../../base/places.ts';
import type { ShownRecord } from './streamOutput.ts';

/** How much output a reader passes on in its turn. */
const pieceBytes = 65_536;
/** What a small record counts. */
const recordBytes = 256;
/**
 * How many turns of the event loop belong to other work after a piece. libuv accepts one connection in each, so a new
 * client may need many. Without other work they take microseconds.
 */
const turnsOfOthers = 10;

/** One reader at a time. */
const turns = new Places({ all: 1 });

/**
 * The same records, at a pace that leaves the event loop to other work. One reader of output at a time gets a piece, and
 * users with readers take turns. So other requests are answered soon, however many readers a user has. Throws the
 * signal's reason when it is aborted.
 */
export async function* inTurn<R extends ShownRecord>(
  records: AsyncIterable<R>,
  { userId, signal }: { userId: string; signal: AbortSignal },
): AsyncGenerator<R, void, undefined> {
  let left = 0;
  for await (const record of records) {
    if (left <= 0) {
      await turnOf(userId);
      left = pieceBytes;
    }
    signal.throwIfAborted();
    left -= 'payload' in record ? Math.max(record.payload.length, recordBytes) : recordBytes;
    yield record;
  }
}

/** Resolves when the user's reader may pass on a piece. The next reader may when others had their turns. */
async function turnOf(owner: string): Promise<void> {
  const turn = await turns.take({ owner });
  void othersTurns().then(() => turn[Symbol.dispose]());
}

async function othersTurns(): Promise<void> {
  for (let count = 0; count < turnsOfOthers; count++) await nextTurnOfEventLoop();
}
