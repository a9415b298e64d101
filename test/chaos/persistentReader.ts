import { setTimeout as delay } from 'node:timers/promises';
import type { ChatUser } from '../builders/chat.ts';
import { idsOf } from '../builders/chat.ts';

/** The chunks of one turn that a client has read over all its connections. */
export interface PersistentReading {
  turnId: string;
  threadId: string;
  /** The chunks by number. */
  lines: Map<number, string>;
  reconnects: number;
}

const retryMs = 50;
const giveUpAfterMs = 500_000;

/**
 * Sends a message and reads its turn to the end, over as many connections as needed. Repeats the same outbox item until
 * it is accepted, then resumes after the last chunk. Fills `reading`. Throws if a number comes twice with different
 * content.
 */
export async function sendAndRead(
  user: ChatUser,
  body: Record<string, unknown>,
  reading = newReading(),
): Promise<PersistentReading> {
  const deadline = performance.now() + giveUpAfterMs;
  while (performance.now() < deadline) {
    try {
      if (await readOnce(user, body, reading)) return reading;
    } catch (error) {
      if (error instanceof Contradiction) throw error;
    }
    reading.reconnects++;
    await delay(retryMs);
  }
  throw new Error(`The turn ${reading.turnId} did not end; it has ${reading.lines.size} chunks.`);
}

export function newReading(): PersistentReading {
  return { turnId: '', threadId: '', lines: new Map(), reconnects: 0 };
}

/** Reads over one connection. Returns true if the stream came to its end. */
async function readOnce(user: ChatUser, body: Record<string, unknown>, reading: PersistentReading): Promise<boolean> {
  const lastEventId = reading.lines.size;
  const stream =
    reading.turnId === ''
      ? await user.send(body)
      : await user.open(`/chat/turns/${reading.turnId}/stream`, { lastEventId });
  if (stream.response.status >= 500) return false;
  if (stream.response.status !== 200)
    throw new Contradiction(`${stream.response.status} ${await stream.response.text()}`);
  Object.assign(reading, idsOf(stream));
  for await (const { id, data } of stream.events) {
    if (data === '[DONE]') return true;
    if (id === undefined) throw new Contradiction('An event has no number.');
    const known = reading.lines.get(id);
    if (known !== undefined && known !== data) throw new Contradiction(`Chunk ${id} was ${known} and became ${data}.`);
    if (id > reading.lines.size + 1) throw new Contradiction(`Chunk ${id} came after ${reading.lines.size}.`);
    reading.lines.set(id, data);
  }
  return false;
}

class Contradiction extends Error {}
