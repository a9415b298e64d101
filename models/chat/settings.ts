import type { Pool } from 'mysql2/promise';
import { createFreshCache } from '../../base/freshCache.ts';
import { oneFor } from '../../base/oneFor.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** A space's settings for its chats. Null means the installation's setting, or the model's. */
export interface ChatSettings {
  /** The space's system prompt. It follows Atrium's own and precedes everything else. */
  systemPrompt: string | null;
  /** The model for messages that name none and do not ask for an automatic choice. */
  defaultModelId: string | null;
  /** The most model calls in one turn. */
  maxStepsPerTurn: number | null;
  /** The most output tokens of one model call. */
  maxOutputTokens: number | null;
  /** The most tokens of one prompt. A longer thread is summarised, however large the model's window is. */
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

/** How long another process may use the old settings. */
const maxAgeMs = 1_000;
const cacheOf = oneFor((pool: Pool) =>
  createFreshCache((spaceId) => readChatSettings({ pool }, spaceId), { maxAgeMs }),
);

/** The settings for messages and model calls, at most a second old: every turn reads them, and they hardly change. */
export function chatSettingsOf({ pool }: Pick<Database, 'pool'>, spaceId: string): Promise<ChatSettings> {
  return cacheOf(pool).get(spaceId);
}

export async function readChatSettings(database: Pick<Database, 'pool'>, spaceId: string): Promise<ChatSettings> {
  const sql = `SELECT system_prompt, default_model_id, max_steps_per_turn, max_output_tokens, max_context_tokens,
            updated_by, updated_at
       FROM chat_settings WHERE space_id = ?`;
  const rows = await select<ChatSettings>(database.pool, sql, [spaceId]);
  return rows[0] ?? unset;
}

/** Replaces all settings. Running turns use them from their next model call on, in other processes a second later. */
export async function putChatSettings(
  database: Database,
  spaceId: string,
  change: ChatSettingsChange,
  actor: Actor & { userId: string },
): Promise<ChatSettings> {
  await transaction(database, async (tx) => {
    await execute(tx, 'REPLACE INTO chat_settings SET ?', [
      {
        spaceId,
        systemPrompt: change.systemPrompt,
        defaultModelId: change.defaultModelId,
        maxStepsPerTurn: change.maxStepsPerTurn,
        maxOutputTokens: change.maxOutputTokens,
        maxContextTokens: change.maxContextTokens,
        updatedBy: actor.userId,
        updatedAt: new Date(),
      },
    ]);
    await appendAudit(tx, spaceId, actor, 'chat-settings.changed', null);
  });
  cacheOf(database.pool).forget(spaceId);
  return readChatSettings(database, spaceId);
}
