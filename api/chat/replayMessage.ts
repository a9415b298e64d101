import type { Response } from 'express';
import type { Message, StoredPart } from '../../models/chat/message.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { encodeChunks } from '../../models/chat/turnLog/entry.ts';
import type { Database } from '../../models/database/database.ts';
import { doneEvent, drained, formatEvents, openEventStream } from '../frame/sse.ts';

/** Streams an ended turn whose log has been purged, rebuilt from its stored message. */
export async function replayMessage(database: Database, res: Response, turn: Turn): Promise<void> {
  const message = await chatModels(database).Message.find(turn.threadId, turn.assistantMessageId);
  openEventStream(res, { turnId: turn.id, threadId: turn.threadId });
  let seq = 1;
  // Writes part by part at the reader's pace: an answer may be many megabytes long.
  for (const chunks of partsAsChunks(turn, message)) {
    if (res.destroyed) return;
    if (!res.write(formatEvents(seq, encodeChunks(chunks).split('\n')))) await drained(res);
    seq += chunks.length;
  }
  res.end(doneEvent);
}

/** The chunks of an ended turn's log, rebuilt from its stored message. */
export function* partsAsChunks(turn: Turn, message: Message | null): Generator<UiChunk[]> {
  const metadata = message?.metadata ?? undefined;
  yield [{ type: 'start', messageId: turn.assistantMessageId, messageMetadata: metadata ?? {} }];
  for (const [index, part] of (message?.parts ?? []).entries()) {
    const chunks = chunksOf(part, index);
    if (chunks.length > 0) yield chunks;
  }
  yield [lastChunk(turn, metadata)];
}

function chunksOf(part: StoredPart, index: number): UiChunk[] {
  const id = String(index);
  switch (part.type) {
    case 'step-start':
      return [{ type: 'start-step' }];
    case 'text':
    case 'reasoning':
      return [
        { type: `${part.type}-start`, id },
        { type: `${part.type}-delta`, id, delta: part.text },
        { type: `${part.type}-end`, id },
      ];
    case 'dynamic-tool': {
      const { toolCallId, toolName, input, output, errorText } = part;
      const made: UiChunk = { type: 'tool-input-available', toolCallId, toolName, input, dynamic: true };
      if (part.state === 'output-available') {
        return [made, { type: 'tool-output-available', toolCallId, output, dynamic: true }];
      }
      if (part.state === 'output-error') {
        return [made, { type: 'tool-output-error', toolCallId, errorText: errorText ?? '', dynamic: true }];
      }
      return [made];
    }
    case 'source-url':
    case 'source-document':
      return [part];
    case 'file':
      return [{ type: 'file', url: part.url, mediaType: part.mediaType }];
    case 'data-file':
      return [];
  }
}

function lastChunk(turn: Turn, metadata: Record<string, unknown> | undefined): UiChunk {
  if (turn.status === 'stopped') return { type: 'abort', reason: 'stopped' };
  if (turn.status === 'failed') {
    return { type: 'error', errorText: turn.errorDetail ?? '', code: turn.errorCode ?? 'INTERNAL' };
  }
  return { type: 'finish', finishReason: turn.finishReason ?? 'other', messageMetadata: metadata };
}
