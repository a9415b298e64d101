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
