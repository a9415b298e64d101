import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Runner, select } from '../database/sql.ts';
import { agentSteps } from './agents.ts';
import { imageOf } from './images.ts';
import { takeVersion } from './sharing.ts';
import { type EnvironmentStep, noSetting, type Setting } from './steps.ts';
import { isUsable } from './version.ts';

type Settings = Pick<Config, 'environments'>;

/**
 * The base as it is stored: `debian`, `agents`, the name of an image, or the id of an environment, which may be named
 * too. Throws 422.
 */
export async function requireKnownBase(
  on: Runner,
  config: Settings,
  spaceId: string,
  base: string,
  ownId?: string,
): Promise<string> {
  if (base === 'debian' || base === 'agents' || imageOf(base, config) !== undefined) return base;
  const found = await findUsable(on, spaceId, base);
  if (found !== undefined && found.id !== ownId) return found.id;
  const bases =
    'bases are debian, agents, the environments of the space, shared ones by their id, and images, named with their registry';
  const detail =
    found === undefined ? `there is no base or environment ${base}; ${bases}` : 'an environment is not its own base';
  throw new DomainError('unprocessable', 'ENVIRONMENT_BASE_UNKNOWN', `The environment has no base: ${detail}.`, {
    errors: [{ pointer: '/base', detail }],
  });
}

/**
 * The environment that a space may use by this id, or that it has by this name. Those of other spaces have no names here:
 * whoever has one could rename it to what others mean to be something else.
 */
export async function findUsable(
  on: Runner,
  spaceId: string,
  idOrName: string,
): Promise<{ id: string; name: string } | undefined> {
  const byId = `SELECT e.id, e.name FROM environments e WHERE e.id = ? AND ${isUsable}`;
  const ofSpace = 'SELECT id, name FROM environments WHERE space_id = ? AND deleted_at IS NULL AND name = ?';
  const ways: [string, string[]][] = [
    [byId, [idOrName, spaceId]],
    [ofSpace, [spaceId, idOrName]],
  ];
  for (const [sql, values] of ways) {
    const [found] = await select<{ id: string; name: string }>(on, sql, values);
    if (found !== undefined) return found;
  }
  return undefined;
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

/**
 * Throws 409 `ENVIRONMENT_NOT_READY`, 422 `ENVIRONMENT_BASE_UNKNOWN` if the base was deleted or is no longer shared, and
 * `IMAGE_REGISTRY_NOT_ALLOWED`. The space is locked.
 */
export async function originOf(tx: Transaction, config: Settings, spaceId: string, base: string): Promise<Origin> {
  const fresh = { name: 'debian', saveId: null, setting: noSetting };
  if (base === 'debian') return { ...fresh, steps: [] };
  if (base === 'agents') return { ...fresh, steps: agentSteps };
  if (imageOf(base, config) !== undefined) return { ...fresh, name: base, steps: [] };
  await requireKnownBase(tx, config, spaceId, base);
  const { id, saveId, env, workdir, user } = await takeVersion(tx, { spaceId, environmentId: base });
  return { name: id, saveId, setting: { env, workdir, user }, steps: [] };
}
