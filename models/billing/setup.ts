import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { grant } from './credits.ts';
import { lockBalances } from './ledger.ts';

/**
 * Limits on initial credits, in micro-credits: for one space, for all spaces that a user sets up, and for the
 * installation.
 */
export interface InitialCreditLimits {
  perSpace: number;
  perUser: number;
  perInstallation: number;
}

export interface SetupRow {
  status: 'none' | 'settingUp' | 'ready';
  customerId: string | null;
  initialCredits: number;
  setUpBy: string | null;
  operationId: string | null;
}

const fields = 'status, customer_id, initial_credits, set_up_by, operation_id';

export async function findSetup(database: Database, spaceId: string): Promise<SetupRow | undefined> {
  const [row] = await select<SetupRow>(database.pool, `SELECT ${fields} FROM billing_settings WHERE space_id = ?`, [
    spaceId,
  ]);
  return row;
}

/** Locks the space's row of settings. Makes it if it does not exist. */
export async function lockSettings(tx: Transaction, spaceId: string): Promise<SetupRow> {
  const sql = `SELECT ${fields} FROM billing_settings WHERE space_id = ? FOR UPDATE`;
  const [known] = await select<SetupRow>(tx, sql, [spaceId]);
  if (known !== undefined) return known;
  await execute(tx, 'INSERT IGNORE INTO billing_settings (space_id, created_at) VALUES (?, ?)', [spaceId, new Date()]);
  const [made] = await select<SetupRow>(tx, sql, [spaceId]);
  if (made === undefined) throw new Error('The settings of billing could not be made.');
  return made;
}

/**
 * Writes the intent to set up billing. Returns 'ready' if that is done, otherwise the operation to start or wait for. A
 * repeat changes nothing, whatever its amount. Throws 422 if the credits exceed the limits.
 */
export async function beginSetup(
  database: Database,
  intent: { spaceId: string; userId: string; micro: number; limits: InitialCreditLimits },
): Promise<'ready' | Operation> {
  const { spaceId, userId, micro, limits } = intent;
  return transaction(database, async (tx) => {
    // Serializes all gifts of initial credits, so that the limits hold.
    if (micro > 0) await select(tx, "SELECT value FROM billing_state WHERE name = 'initialCredits' FOR UPDATE", []);
    const row = await lockSettings(tx, spaceId);
    if (row.status === 'ready') return 'ready';
    if (row.status === 'settingUp' && row.operationId !== null) {
      const running = await operationModels(tx).Operation.findByPk(row.operationId, { transaction: tx });
      if (running?.status === 'running') return running;
    }
    if (micro > 0) await refuseBeyondLimits(tx, spaceId, userId, micro, limits);
    const operation = await operationModels(tx).Operation.begin(
      { kind: 'setUpBilling', spaceId, userId, subjectId: spaceId },
      tx,
    );
    await execute(
      tx,
      "UPDATE billing_settings SET status = 'settingUp', initial_credits = ?, set_up_by = ?, operation_id = ? WHERE space_id = ?",
      [micro, userId, operation.id, spaceId],
    );
    return operation;
  });
}

async function refuseBeyondLimits(
  tx: Transaction,
  spaceId: string,
  userId: string,
  micro: number,
  limits: InitialCreditLimits,
): Promise<void> {
  const [given] = await select<{ total: number; byUser: number }>(
    tx,
    `SELECT CAST(COALESCE(SUM(initial_credits), 0) AS SIGNED) AS total,
            CAST(COALESCE(SUM(IF(set_up_by = ?, initial_credits, 0)), 0) AS SIGNED) AS byUser
       FROM billing_settings WHERE space_id <> ? AND status <> 'none'`,
    [userId, spaceId],
  );
  const refusal =
    micro > limits.perSpace
      ? 'more than a space may be given'
      : (given?.byUser ?? 0) + micro > limits.perUser
        ? 'more than you may still give to your spaces'
        : (given?.total ?? 0) + micro > limits.perInstallation
          ? 'more than this installation may still give away'
          : undefined;
  if (refusal === undefined) return;
  throw new DomainError('unprocessable', 'INITIAL_CREDITS_TOO_HIGH', `The initial credits are ${refusal}.`, {
    errors: [{ pointer: '/initialCredits', detail: `is ${refusal}` }],
  });
}

export async function saveCustomer(database: Database, spaceId: string, customerId: string): Promise<void> {
  await transaction(database, async (tx) => {
    await lockSettings(tx, spaceId);
    await execute(tx, 'UPDATE billing_settings SET customer_id = COALESCE(customer_id, ?) WHERE space_id = ?', [
      customerId,
      spaceId,
    ]);
  });
}

/** Opens the accounts, gives the initial credits once, and ends the operation, in one commit. */
export async function finishSetup(database: Database, spaceId: string, operationId: string): Promise<void> {
  await transaction(database, async (tx) => {
    const row = await lockSettings(tx, spaceId);
    await lockBalances(tx, spaceId);
    await grant(tx, { spaceId, sourceId: `setup:${spaceId}`, micro: row.initialCredits, userId: row.setUpBy });
    await execute(tx, "UPDATE billing_settings SET status = 'ready' WHERE space_id = ?", [spaceId]);
    await operationModels(tx).Operation.end(operationId, { status: 'succeeded', result: { ok: true } }, tx);
  });
}
