import { setTimeout as delay } from 'node:timers/promises';
import { idPrefixes } from '../../base/ids.ts';
import type { Turn } from '../../models/chat/turn.ts';

/** The id of what a tool call makes, by which a repeated call finds it. */
export function idOfCall(kind: keyof typeof idPrefixes, toolCallId: string): string {
  return `${idPrefixes[kind]}${toolCallId.slice(toolCallId.indexOf('_'))}`;
}

/** Who acts when a turn's tools act. */
export function actorOfTurn({ userId, apiKeyId }: Pick<Turn, 'userId' | 'apiKeyId'>) {
  return { userId, credentialId: apiKeyId, address: null };
}

interface Patience {
  signal: AbortSignal;
  /** The first pause between two looks. Each further one is longer, up to `mostMs`. */
  firstMs?: number;
  mostMs?: number;
  /** How long it goes on. Default: for ever. */
  forMs?: number;
}

/** Looks again and again until `isDone`, or until the time is over. Returns what it saw last. */
export async function lookUntil<T>(
  look: () => Promise<T>,
  isDone: (seen: T) => boolean,
  { signal, firstMs = 100, mostMs = 100, forMs = Number.POSITIVE_INFINITY }: Patience,
): Promise<T> {
  const endMs = Date.now() + forMs;
  for (let pauseMs = firstMs; ; pauseMs = Math.min(pauseMs * 1.4, mostMs)) {
    const seen = await look();
    if (isDone(seen) || Date.now() > endMs) return seen;
    await delay(pauseMs, undefined, { signal });
  }
}
