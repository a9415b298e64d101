import { DomainError } from '../../base/errors.ts';
import { type Runner, select } from '../database/sql.ts';
import { agentSteps } from './agents.ts';
import { type EnvironmentStep, noSetting, type Setting } from './steps.ts';
import { readyVersion } from './version.ts';

/** The base as it is stored: `debian`, `agents`, or the id of an environment, which may be named too. Throws 422. */
export async function requireKnownBase(on: Runner, spaceId: string, base: string, ownId?: string): Promise<string> {
  if (base === 'debian' || base === 'agents') return base;
  const sql = 'SELECT id FROM environments WHERE space_id = ? AND deleted_at IS NULL AND (id = ? OR name = ?)';
  const [found] = await select<{ id: string }>(on, sql, [spaceId, base, base]);
  if (found !== undefined && found.id !== ownId) return found.id;
  const detail =
    found === undefined
      ? `there is no base or environment ${base}; bases are debian, agents and the environments of the space`
      : 'an environment is not its own base';
  throw new DomainError('unprocessable', 'ENVIRONMENT_BASE_UNKNOWN', `The environment has no base: ${detail}.`, {
    errors: [{ pointer: '/base', detail }],
  });
}

/** What a build begins with. */
export interface Origin {
  /** Names the content, for digests. */
  name: string;
  /** The save that it begins with. Null: a new root file system. */
  saveId: string | null;
  setting: Setting;
  /** Steps before those of the environment. */
  steps: readonly EnvironmentStep[];
}

/** Throws 409 `ENVIRONMENT_NOT_READY`, 422 `ENVIRONMENT_BASE_UNKNOWN` if the base was deleted. */
export async function originOf(on: Runner, spaceId: string, base: string): Promise<Origin> {
  const fresh = { name: 'debian', saveId: null, setting: noSetting };
  if (base === 'debian') return { ...fresh, steps: [] };
  if (base === 'agents') return { ...fresh, steps: agentSteps };
  await requireKnownBase(on, spaceId, base);
  const { id, saveId, env, workdir, user } = await readyVersion(on, { spaceId, environmentId: base });
  return { name: id, saveId, setting: { env, workdir, user }, steps: [] };
}
