import type { RowDataPacket } from 'mysql2';
import type { Pool } from 'mysql2/promise';
import { createFreshCache } from '../../base/freshCache.ts';
import { oneFor } from '../../base/oneFor.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';

/** What a space has set for its chats. Null means the installation's own, or the model's. */
export interface ChatSettings {
  /** Comes after our own words, before everything else. */
  systemPrompt: string | null;
  /** For messages that name no model and do not ask for an automatic choice. */
  defaultModelId: string | null;
  /** Model calls in one turn. */
  maxStepsPerTurn: number | null;
  /** Of one model call. */
  maxOutputTokens: number | null;
  /** Of one prompt: beyond it the thread is summarised, however large the model's window is. */
  maxContextTokens: number | null;
  updatedBy: string | null;
  updatedAt: Date | null;
}

export type ChatSettingsChange = Omit<ChatSettings, 'updatedBy' | 'updatedAt'>;

const unset: ChatSettings = {
  systemPrompt: null,
  defaultModelId: null,
  maxStepsPerTurn: null,
  maxOutputTokens: null,
  maxContextTokens: null,
  updatedBy: null,
  updatedAt: null,
};

/** In another process: in this one a change is known at once. */
const maxAgeMs = 1_000;
const cacheOf = oneFor((pool: Pool) =>
  createFreshCache((spaceId) => readChatSettings({ pool }, spaceId), { maxAgeMs }),
);

/** The settings for messages and model calls, as of a second ago: each turn asks for them, and they hardly change. */
export function chatSettingsOf({ pool }: Pick<Database, 'pool'>, spaceId: string): Promise<ChatSettings> {
  return cacheOf(pool).get(spaceId);
}

export async function readChatSettings(database: Pick<Database, 'pool'>, spaceId: string): Promise<ChatSettings> {
  const [rows] = await database.pool.query<RowDataPacket[]>(
    `SELECT system_prompt AS systemPrompt, default_model_id AS defaultModelId, max_steps_per_turn AS maxStepsPerTurn,
            max_output_tokens AS maxOutputTokens, max_context_tokens AS maxContextTokens,
            updated_by AS updatedBy, updated_at AS updatedAt
       FROM chat_settings WHERE space_id = ?`,
    [spaceId],
  );
  return (rows[0] as ChatSettings | undefined) ?? unset;
}

/** Replaces all settings; running turns use them from their next model call on, in other processes a second later. */
export async function putChatSettings(
  database: Database,
  spaceId: string,
  change: ChatSettingsChange,
  actor: Actor & { userId: string },
): Promise<ChatSettings> {
  await transaction(database, async (tx) => {
    await execute(tx, 'REPLACE INTO chat_settings SET ?', [
      {
        space_id: spaceId,
        system_prompt: change.systemPrompt,
        default_model_id: change.defaultModelId,
        max_steps_per_turn: change.maxStepsPerTurn,
        max_output_tokens: change.maxOutputTokens,
        max_context_tokens: change.maxContextTokens,
        updated_by: actor.userId,
        updated_at: new Date(),
      },
    ]);
    await appendAudit(tx, spaceId, actor, 'chat-settings.changed', null);
  });
  cacheOf(database.pool).forget(spaceId);
  return readChatSettings(database, spaceId);
}
