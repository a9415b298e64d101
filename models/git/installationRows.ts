import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { GitCredentialStatus } from './credentials.ts';

/** One space’s use of an installation. */
export interface InstallationKey {
  spaceId: string;
  provider: string;
  installationId: string;
}

export interface GitInstallation extends InstallationKey {
  account: string;
  accountId: string;
  /** Whether the whole installation was proven, or only listed repositories. */
  repositories: 'all' | 'listed';
  status: GitCredentialStatus;
  dueAt: Date;
}

/** A person at the provider. */
export interface HostedPerson {
  id: string;
  login: string;
}

/** The repository and the right for which a token may be made. */
export interface InstallationRepository {
  /** Null if the whole installation was proven: then the repository's path identifies it. */
  repositoryId: string | null;
  mayWrite: boolean;
  /** The person whose right it is; null if the whole installation was proven. */
  provenBy: HostedPerson | null;
}

const columns = 'space_id, provider, installation_id, account, account_id, repositories, status, due_at';
const ofKey = 'space_id = ? AND provider = ? AND installation_id = ?';
const valuesOf = ({ spaceId, provider, installationId }: InstallationKey) => [spaceId, provider, installationId];

export async function listInstallations(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
  provider: string,
): Promise<GitInstallation[]> {
  const sql = `SELECT ${columns} FROM git_installations WHERE space_id = ? AND provider = ? ORDER BY installation_id`;
  return select<GitInstallation>(pool, sql, [spaceId, provider]);
}

/** The due installations of all spaces, the longest due first. */
export async function dueInstallations(
  { pool }: Pick<Database, 'pool'>,
  provider: string,
  now: Date,
  limit: number,
): Promise<GitInstallation[]> {
  const sql = `SELECT ${columns} FROM git_installations WHERE due_at <= ? AND provider = ? ORDER BY due_at LIMIT ?`;
  return select<GitInstallation>(pool, sql, [now, provider, limit]);
}

/** Makes an installation due in each space that uses it. */
export async function makeDue(
  { pool }: Pick<Database, 'pool'>,
  provider: string,
  installationId: string,
): Promise<void> {
  const sql = 'UPDATE git_installations SET due_at = ? WHERE provider = ? AND installation_id = ?';
  await execute(pool, sql, [new Date(), provider, installationId]);
}

/** Postpones an installation after a failure, unless it has become due again. */
export async function putOff(
  { pool }: Pick<Database, 'pool'>,
  installation: GitInstallation,
  until: Date,
): Promise<void> {
  const sql = `UPDATE git_installations SET due_at = ? WHERE ${ofKey} AND due_at = ?`;
  await execute(pool, sql, [until, ...valuesOf(installation), installation.dueAt]);
}

interface Proven extends Pick<GitInstallation, 'account' | 'repositories'> {
  login: string;
  provenById: string | null;
}

/** Undefined if the person who connected the installation has not proven access to the repository at this path. */
export async function findInstallationRepository(
  { pool }: Pick<Database, 'pool'>,
  key: InstallationKey,
  path: string,
): Promise<InstallationRepository | undefined> {
  const sql = `SELECT account, repositories, proven_by AS login, proven_by_id FROM git_installations
      WHERE ${ofKey} AND status = 'active'`;
  const [installation] = await select<Proven>(pool, sql, valuesOf(key));
  if (installation === undefined) return undefined;
  const { account, repositories, login, provenById } = installation;
  if (repositories === 'all') {
    const isOfAccount = path.toLowerCase().startsWith(`${account.toLowerCase()}/`);
    return isOfAccount ? { repositoryId: null, mayWrite: true, provenBy: null } : undefined;
  }
  if (provenById === null) return undefined;
  const [row] = await select<{ repositoryId: string; mayWrite: number }>(
    pool,
    `SELECT repository_id, may_write FROM git_installation_repositories
      WHERE ${ofKey} AND path = ?`,
    [...valuesOf(key), path.toLowerCase()],
  );
  return row && { repositoryId: row.repositoryId, mayWrite: row.mayWrite === 1, provenBy: { id: provenById, login } };
}

export async function lockInstallation(tx: Transaction, key: InstallationKey): Promise<GitInstallation | undefined> {
  const sql = `SELECT ${columns} FROM git_installations WHERE ${ofKey} FOR UPDATE`;
  const [row] = await select<GitInstallation>(tx, sql, valuesOf(key));
  return row;
}

export async function updateInstallation(
  tx: Transaction,
  key: InstallationKey,
  row: Record<string, unknown>,
): Promise<void> {
  await execute(tx, `UPDATE git_installations SET ? WHERE ${ofKey}`, [row, ...valuesOf(key)]);
}

const rowsAtOnce = 500;

/** Replaces the repositories that were proven before. */
export async function replaceRepositories(
  tx: Transaction,
  key: InstallationKey,
  repositories: readonly { id: string; path: string; mayWrite: boolean }[],
): Promise<void> {
  await execute(tx, `DELETE FROM git_installation_repositories WHERE ${ofKey}`, valuesOf(key));
  const byPath = new Map(repositories.map((repository) => [repository.path.toLowerCase(), repository]));
  const rows = [...byPath].map(([path, { id, mayWrite }]) => [...valuesOf(key), path, id, mayWrite]);
  for (let at = 0; at < rows.length; at += rowsAtOnce) {
    const sql = `INSERT INTO git_installation_repositories
      (space_id, provider, installation_id, path, repository_id, may_write) VALUES ?`;
    await execute(tx, sql, [rows.slice(at, at + rowsAtOnce)]);
  }
}

/** Ends a space's use of an installation. */
export async function forgetInstallation(tx: Transaction, key: InstallationKey): Promise<void> {
  for (const table of ['git_installation_repositories', 'git_installations']) {
    await execute(tx, `DELETE FROM ${table} WHERE ${ofKey}`, valuesOf(key));
  }
}
