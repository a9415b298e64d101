import type { Transaction } from 'sequelize';
import { loosen } from '../../computers/saves.ts';
import { execute } from '../../database/sql.ts';
import { type OperationEnd, operationModels } from '../../operations/operation.ts';
import type { EnvironmentDeps } from '../environment.ts';
import { markOld } from '../letGo.ts';
import { detailOfBuild, reasonOfBuild } from '../reasons.ts';
import type { Version } from '../version.ts';
import { forgetPlans } from './stepRows.ts';

type BuildEnd = { status: 'ready' } | { status: 'failed'; code: string } | { status: 'cancelled' };

/** Ends a build that is locked, with its operation. What is built of a version that is not ready is let go. */
export async function endBuild(
  { config }: Pick<EnvironmentDeps, 'config'>,
  tx: Transaction,
  version: Version,
  end: BuildEnd,
): Promise<void> {
  const { id, saveId, operationId } = version;
  const errorCode = end.status === 'failed' ? reasonOfBuild(end.code) : null;
  const ended = { status: end.status, errorCode, waitsFor: null, endedAt: new Date() };
  const row = { ...ended, ...(end.status !== 'ready' && { saveId: null }) };
  await execute(tx, 'UPDATE environment_versions SET ? WHERE id = ?', [row, id]);
  await forgetPlans(tx, id);
  if (end.status !== 'ready') {
    const sql = `UPDATE environment_steps SET status = 'failed', ended_at = COALESCE(ended_at, ?)
      WHERE version_id = ? AND status IN ('running', 'ran')`;
    await execute(tx, sql, [new Date(), id]);
    if (saveId !== null) await loosen(tx, [saveId]);
  }
  await markOld(tx, version.environmentId, config.environments.versionsKept);
  await operationModels(tx).Operation.end(operationId, operationEnd(version, end.status, errorCode), tx);
}

function operationEnd({ environmentId }: Version, status: BuildEnd['status'], code: string | null): OperationEnd {
  if (status === 'ready') return { status: 'succeeded', result: { ok: true, id: environmentId } };
  return code === null ? { status: 'cancelled' } : { status: 'failed', code, detail: detailOfBuild(code) };
}
