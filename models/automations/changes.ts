import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { checkSchedule, nextTick, type Schedule } from '../../base/schedule.ts';
import { type Actor, type AuditAction, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import type { FileReference } from '../chat/message.ts';
import { chatModels } from '../chat/models.ts';
import type { TurnMode } from '../chat/turn.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, insertInstance, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type Automation, getAutomation, lockAutomation, type Overlap, scheduleColumns } from './automation.ts';

export interface AutomationLimits {
  maxPerSpace: number;
  minIntervalMs: number;
}

/** The settings of an automation. Its thread, model and files were checked before. */
export interface AutomationFields {
  name: string;
  prompt: string;
  /** Null makes a thread of its own. */
  threadId: string | null;
  modelId: string | null;
  effort: string | null;
  mode: TurnMode;
  files: FileReference[];
  schedule: Schedule | null;
  overlap: Overlap;
  enabled: boolean;
}

export type OwnActor = Actor & { userId: string };

/** An automation to make. Its runs have the given authority, at most that of the person who makes it. */
export interface NewAutomation extends AutomationFields {
  id: string;
  spaceId: string;
  authority: Authority;
  madeByTurnId: string | null;
}

/** The same id returns the same automation. Throws 404, 422 `TOO_MANY_AUTOMATIONS`, and errors of the schedule. */
export async function makeAutomation(
  database: Database,
  fields: NewAutomation,
  actor: OwnActor,
  limits: AutomationLimits,
): Promise<Automation> {
  const { id, spaceId } = fields;
  await transaction(database, (tx) => makeAutomationIn(tx, fields, actor, limits));
  return getAutomation(database, { spaceId, userId: actor.userId, id });
}

export async function makeAutomationIn(
  tx: Transaction,
  fields: NewAutomation,
  actor: OwnActor,
  limits: AutomationLimits,
): Promise<{ threadId: string; nextRunAt: Date | null } | undefined> {
  const { id, spaceId, authority, madeByTurnId, ...said } = fields;
  await lockLivingSpace(tx, spaceId);
  if ((await select(tx, 'SELECT id FROM automations WHERE id = ?', [id])).length > 0) return undefined;
  const [{ count } = { count: 0 }] = await select<{ count: number }>(
    tx,
    'SELECT COUNT(*) AS count FROM automations WHERE space_id = ? AND deleted_at IS NULL',
    [spaceId],
  );
  if (count >= limits.maxPerSpace) {
    const detail = `A space has at most ${limits.maxPerSpace} automations. Delete one first.`;
    throw new DomainError('unprocessable', 'TOO_MANY_AUTOMATIONS', detail);
  }
  const now = new Date();
  if (said.schedule !== null) checkSchedule(said.schedule, limits, now);
  const threadId = said.threadId ?? (await ownThread(tx, spaceId, actor.userId, said.name));
  const nextRunAt = nextRunOf(said, now);
  await insert(tx, 'automations', {
    ...{ id, spaceId, userId: actor.userId, madeByTurnId, version: 1, failures: 0 },
    ...columnsOf({ ...said, threadId }, authority),
    ...{ nextRunAt, createdAt: now, updatedAt: now },
  });
  await appendAudit(tx, spaceId, actor, 'automation.made', id);
  return { threadId, nextRunAt };
}

/**
 * Changes the given fields. The automation then runs with the authority of the last person who changed it. When it is
 * enabled again, its failures are forgotten and its next tick is the first from now on.
 */
export async function changeAutomation(
  database: Database,
  { spaceId, id }: { spaceId: string; id: string },
  change: Partial<AutomationFields>,
  by: { actor: OwnActor; authority: Authority },
  limits: AutomationLimits,
): Promise<Automation> {
  const { actor, authority } = by;
  await transaction(database, async (tx) => {
    const known = await lockOwn(tx, { spaceId, userId: actor.userId, id });
    const now = new Date();
    if (change.schedule != null) checkSchedule(change.schedule, limits, now);
    const { threadId: thread = known.threadId, ...said } = { ...known, ...change };
    const threadId = thread ?? (await ownThread(tx, spaceId, actor.userId, said.name));
    const isAnew = said.enabled && (!known.enabled || change.schedule !== undefined);
    await execute(tx, 'UPDATE automations SET ? WHERE id = ?', [
      {
        ...columnsOf({ ...said, threadId }, authority),
        ...(isAnew && { nextRunAt: nextRunOf(said, now) }),
        ...(!said.enabled && { nextRunAt: null }),
        ...(said.enabled && !known.enabled && { failures: 0 }),
        // A person has dealt with the reason of the pause.
        ...(change.enabled !== undefined && { pauseCode: null, pauseDetail: null, pausedAt: null }),
        ...{ version: known.version + 1, updatedAt: now },
      },
      id,
    ]);
    await appendAudit(tx, spaceId, actor, 'automation.changed', id);
  });
  return getAutomation(database, { spaceId, userId: actor.userId, id });
}

/** The automation starts no more runs. A run that has begun goes on. Throws 404. */
export async function deleteAutomation(
  database: Database,
  { spaceId, id }: { spaceId: string; id: string },
  actor: OwnActor,
): Promise<void> {
  await transaction(database, async (tx) => {
    const own = await lockOwn(tx, { spaceId, userId: actor.userId, id });
    await deleteAutomationIn(tx, own, actor);
  });
}

export async function deleteAutomationIn(
  tx: Transaction,
  { id, spaceId }: Pick<Automation, 'id' | 'spaceId'>,
  actor: OwnActor,
): Promise<void> {
  const gone = { deletedAt: new Date(), enabled: 0, nextRunAt: null, secret: null, oldSecret: null };
  await execute(tx, 'UPDATE automations SET ? WHERE id = ?', [gone, id]);
  await appendAudit(tx, spaceId, actor, 'automation.deleted' satisfies AuditAction, id);
}

/** Locks the caller's own automation. Throws 404, also for another user's. */
export async function lockOwn(
  tx: Transaction,
  { spaceId, userId, id }: { spaceId: string; userId: string; id: string },
): Promise<Automation> {
  const automation = await lockAutomation(tx, id);
  if (automation?.spaceId !== spaceId || automation.userId !== userId) throw notFound('automation');
  return automation;
}

function nextRunOf({ enabled, schedule }: Pick<AutomationFields, 'enabled' | 'schedule'>, now: Date): Date | null {
  return enabled && schedule !== null ? (nextTick(schedule, now) ?? null) : null;
}

function columnsOf(fields: AutomationFields, { scopes, apiKeyId }: Authority): Record<string, unknown> {
  const { name, prompt, threadId, modelId, effort, mode, files, schedule, overlap, enabled } = fields;
  return {
    ...{ name, prompt, threadId, modelId, effort, mode, files },
    ...scheduleColumns(schedule),
    ...{ overlap, enabled, scopes, apiKeyId },
  };
}

async function ownThread(tx: Transaction, spaceId: string, userId: string, title: string): Promise<string> {
  const thread = chatModels(tx).Thread.prepare({ spaceId, userId, title });
  await insertInstance(tx, thread);
  return thread.id;
}
