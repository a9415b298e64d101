import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { insertRows } from './rows.ts';
import { saveRow } from './save.ts';

/** A row in each table of environments: one with a version that failed at its only step. */
export function environmentRows({ spaceId, createdBy }: { spaceId: string; createdBy: string }) {
  const [id, versionId, now] = [newId('environment'), newId('environmentVersion'), new Date()];
  const of = { space_id: spaceId, created_by: createdBy, created_at: now };
  const steps = JSON.stringify([{ run: 'false' }]);
  return {
    environments: { ...of, id, name: id.toLowerCase(), base: 'debian', steps, warnings: '[]' },
    environment_versions: {
      ...of,
      id: versionId,
      environment_id: id,
      number: 1,
      status: 'failed',
      base: 'debian',
      steps,
      without_cache: 0,
      env: '{}',
      operation_id: newId('operation'),
      error_code: 'STEP_FAILED',
      ended_at: now,
    },
    environment_steps: {
      version_id: versionId,
      number: 1,
      space_id: spaceId,
      digest: versionId,
      status: 'failed',
      plan: JSON.stringify({ step: { run: 'false' }, setting: { env: {}, workdir: null, user: null } }),
      exit_code: 1,
      started_at: now,
      ended_at: now,
    },
    environment_layers: { space_id: spaceId, digest: versionId, save_id: newId('homeSave'), used_at: now },
  };
}

/** Inserts them. Returns the id of the environment. */
export async function insertEnvironment(
  database: Database,
  of: { spaceId: string; createdBy: string },
): Promise<string> {
  const rows = environmentRows(of);
  await insertRows(database, rows);
  return rows.environments.id;
}

/** Inserts an environment with a version that is ready, and the save that this is. */
export async function insertReadyEnvironment(
  database: Database,
  of: { spaceId: string; createdBy: string },
  more: { name?: string; base?: string } = {},
): Promise<{ id: string; versionId: string; saveId: string }> {
  const rows = environmentRows(of);
  const save = { ...saveRow({ spaceId: of.spaceId, computerId: newId('computer') }), base: 'debian' };
  const version = { ...rows.environment_versions, status: 'ready', error_code: null, save_id: save.id };
  await insertRows(database, {
    environments: { ...rows.environments, ...more },
    home_saves: save,
    environment_versions: version,
  });
  return { id: rows.environments.id, versionId: version.id, saveId: save.id };
}
