import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { requireNoLoading } from '../../base/loadingVariables.ts';
import type { Config } from '../../config/index.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import {
  type Computer,
  type ComputerBase,
  type ComputerSettings,
  computerColumns,
  computerOf,
  getComputer,
  limitsOf,
} from './computer.ts';
import { defaultComputerName } from './defaultComputer.ts';
import { assertOffered, requireBaseOffered } from './hosts.ts';
import { placeholderVariables } from './placeholders.ts';
import { requireRoomToChange, roomFor } from './quotas.ts';
import { settingOf, volumeOf } from './systems.ts';

/** The fields of a computer that a caller sets. A missing field stays as it is, or gets the operator's default. */
export interface ComputerFields {
  name?: string;
  driver?: Computer['driver'];
  labels?: string[];
  cpuMilli?: number;
  memoryMiB?: number;
  diskMiB?: number;
  idleMinutes?: number;
  hasDrive?: boolean;
  env?: Record<string, string>;
  /** For a new computer: the snapshot whose home it begins with. */
  fromSnapshotId?: string;
  /** For a new computer: the environment whose system it has, and which version of it. */
  environmentId?: string;
  environmentVersion?: number;
}

const settable = ['name', 'driver', 'labels', 'cpuMilli', 'memoryMiB', 'diskMiB', 'idleMinutes', 'hasDrive'] as const;

/** An order to a host: ids and limits, and the variables in clear. */
export interface ComputerOrder {
  computerId: string;
  spaceId: string;
  generation: number;
  driver: NonNullable<Computer['driver']>;
  base?: ComputerBase;
  /** The image whose files it begins with, if it has none yet. */
  image?: string;
  user?: string;
  workdir?: string;
  limits: {
    cpuMilli: number;
    memoryMiB: number;
    diskMiB: number;
    maxTasks: number;
    maxProcesses: number;
    maxLogBytes: number;
  };
  env: Record<string, string>;
  /** Set if the drive of its space is in its home, with the name by which its changes are known. */
  drive?: { name: string };
}

const maxEnvBytes = 32_768;

/** The computers of spaces. Their variables are sealed. Only a start and a fork open them. */
export function createComputers(database: Database, envelope: Envelope, config: Pick<Config, 'computers'>) {
  const sealEnv = async (spaceId: string, id: string, env: Record<string, string>) => {
    await keepOutOfLogs(Object.values(env));
    return envelope.seal(spaceId, sealedContext(id), Buffer.from(JSON.stringify(env), 'utf8'));
  };

  async function openEnv({ id, spaceId }: Computer): Promise<Record<string, string>> {
    const sql = 'SELECT sealed_env AS sealed FROM computers WHERE id = ?';
    const rows = await select<{ sealed: Buffer | null }>(database.pool, sql, [id]);
    const sealed = rows[0]?.sealed ?? null;
    if (sealed === null) return {};
    const opened = await envelope.open(spaceId, sealedContext(id), sealed);
    const env = JSON.parse(opened.toString('utf8')) as Record<string, string>;
    await keepOutOfLogs(Object.values(env));
    return env;
  }

  async function rowOf(spaceId: string, id: string, fields: ComputerFields): Promise<Record<string, unknown>> {
    assertWithinLimits(fields, config);
    await assertOffered(database, fields, config);
    const row: Record<string, unknown> = {};
    for (const field of settable) if (fields[field] !== undefined) row[field] = fields[field];
    if (fields.env !== undefined) {
      assertEnv(fields.env);
      row.envNames = Object.keys(fields.env);
      row.sealedEnv = Object.keys(fields.env).length === 0 ? null : await sealEnv(spaceId, id, fields.env);
    }
    return row;
  }

  return {
    /**
     * Throws 404, 409 `TOO_MANY_COMPUTERS`, `TOO_MUCH_DISK`, `SNAPSHOT_NOT_MADE` or `ENVIRONMENT_NOT_READY`, 422
     * `LIMIT_TOO_HIGH`, `BAD_ENV`, `DRIVER_NOT_OFFERED` or `LABELS_NOT_OFFERED`, 503 `ENVIRONMENTS_UNAVAILABLE`. A known
     * id returns the same computer.
     */
    async create(
      spaceId: string,
      id: string,
      fields: ComputerFields,
      actor: Actor & { userId: string },
    ): Promise<Computer> {
      const row = await rowOf(spaceId, id, fields);
      if (fields.environmentId !== undefined) await requireBaseOffered(database, 'debian', config, fields.driver);
      await transaction(database, async (tx) => {
        if ((await roomFor(tx, { spaceId, id }, fields, config)) === 'known') return;
        const home = await volumeOf(tx, spaceId, fields);
        await insertComputer(tx, { id, spaceId, createdBy: actor.userId, row: { ...row, ...home } });
        await appendAudit(tx, spaceId, actor, 'computer.made', id);
      });
      return getComputer(database, spaceId, id);
    },

    /** The changes apply from the next start. Throws as `create`, and 409 `TOO_MUCH_MEMORY`. */
    async update(spaceId: string, id: string, fields: ComputerFields, actor: Actor): Promise<Computer> {
      const row = await rowOf(spaceId, id, fields);
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        await requireRoomToChange(tx, await lockComputer(tx, spaceId, id), fields, config);
        if (Object.keys(row).length > 0) await execute(tx, 'UPDATE computers SET ? WHERE id = ?', [row, id]);
        await appendAudit(tx, spaceId, actor, 'computer.changed', id);
      });
      return getComputer(database, spaceId, id);
    },

    /** The order with which its host starts it. */
    async orderOf(computer: Computer): Promise<ComputerOrder> {
      const { driver, idleMinutes: _, ...limits } = limitsOf(computer, config);
      const { maxTasks, maxProcesses, maxLogBytes } = config.computers;
      const { env, systemMiB, ...setting } = await settingOf(database, computer);
      return {
        computerId: computer.id,
        spaceId: computer.spaceId,
        generation: computer.generation,
        driver,
        ...setting,
        ...(computer.image !== null && computer.homeSaveId === null && { image: computer.image }),
        limits: { ...limits, diskMiB: limits.diskMiB + systemMiB, maxTasks, maxProcesses, maxLogBytes },
        ...(computer.hasDrive && { drive: { name: computer.name } }),
        env: { ...env, ...(await openEnv(computer)), ...(await placeholderVariables(database, computer.id)) },
      };
    },

    /** Its variables, sealed for a copy of it. */
    async sealEnvFor(copyId: string, from: Computer): Promise<Buffer | null> {
      const env = await openEnv(from);
      return Object.keys(env).length === 0 ? null : sealEnv(from.spaceId, copyId, env);
    },
  };
}

export type Computers = ReturnType<typeof createComputers>;

/** Inserts a new computer, with the status `created`. */
export async function insertComputer(
  tx: Transaction,
  {
    id,
    spaceId,
    createdBy,
    row,
  }: { id: string; spaceId: string; createdBy: string | null; row: Record<string, unknown> },
): Promise<void> {
  const now = new Date();
  await insert(tx, 'computers', {
    name: defaultComputerName,
    envNames: [],
    status: 'created',
    generation: 0,
    ...row,
    id,
    spaceId,
    createdBy,
    createdAt: now,
    statusAt: now,
  });
}

/** The row of a computer that is not deleted, locked. Throws 404. */
export async function lockComputer(tx: Transaction, spaceId: string, id: string): Promise<Computer> {
  const computer = await lockAnyComputer(tx, id);
  if (computer === undefined || computer.spaceId !== spaceId || computer.deletedAt !== null) throw notFound('computer');
  return computer;
}

/** The row of a computer, locked, even if the computer is being deleted. */
export async function lockAnyComputer(tx: Transaction, id: string): Promise<Computer | undefined> {
  const [row] = await select<object>(tx, `SELECT ${computerColumns} FROM computers WHERE id = ? FOR UPDATE`, [id]);
  return row && computerOf(row);
}

function assertWithinLimits(
  fields: Partial<ComputerSettings> | ComputerFields,
  config: Pick<Config, 'computers'>,
): void {
  const { most } = config.computers;
  const errors = (
    [
      ['cpuMilli', '/cpu', 1_000],
      ['memoryMiB', '/memoryMiB', 1],
      ['diskMiB', '/diskMiB', 1],
      ['idleMinutes', '/idleMinutes', 1],
    ] as const
  ).flatMap(([field, pointer, unit]) =>
    (fields[field] ?? 0) > most[field] ? [{ pointer, detail: `must be at most ${most[field] / unit}` }] : [],
  );
  if (errors.length === 0) return;
  const faults = errors.map(({ pointer, detail }) => `${pointer.slice(1)} ${detail}`);
  const detail = `The computer would be larger than the operator allows: ${faults.join(', ')}.`;
  throw new DomainError('unprocessable', 'LIMIT_TOO_HIGH', detail, { errors });
}

function assertEnv(env: Record<string, string>): void {
  requireNoLoading(env);
  let bytes = 0;
  for (const [name, value] of Object.entries(env)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (!value.isWellFormed() || value.includes('\0'))
      throw badEnv(`/env/${name}`, 'contains characters that an environment variable cannot hold');
  }
  if (bytes > maxEnvBytes) throw badEnv('/env', `has more than ${maxEnvBytes} bytes in all`);
}

function badEnv(pointer: string, detail: string): DomainError {
  return new DomainError('unprocessable', 'BAD_ENV', 'The environment variables are not valid.', {
    errors: [{ pointer, detail }],
  });
}

function sealedContext(id: string): string {
  return `computers/${id}`;
}
