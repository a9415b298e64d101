import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type GitCredentialStatus, maxCredentials, tooManyCredentials } from './credentials.ts';
import {
  type GitInstallation,
  type HostedPerson,
  type InstallationKey,
  listInstallations,
  lockInstallation,
  replaceRepositories,
  updateInstallation,
} from './installationRows.ts';

/** The provider's report about an installation. */
export interface InstallationFacts {
  account: string;
  /** Does not change with the account’s name. */
  accountId: string;
  status: 'active' | 'suspended';
}

/** Asks the provider; undefined if the installation no longer exists. */
export type LookAtInstallation = (installationId: string) => Promise<InstallationFacts | undefined>;

export interface Connecting extends InstallationKey {
  /** The provider’s git server. */
  gitHost: string;
  facts: InstallationFacts;
  /** Whether the whole installation was proven, or only these repositories. */
  repositories: 'all' | readonly { id: string; path: string; mayWrite: boolean }[];
  /** The person whose own token at the provider listed the installation, or the operator. */
  provenBy: HostedPerson | 'operator';
}

/** How long a report of the provider is trusted without a notification. */
const freshMs = 24 * 3_600_000;
const looksAtOnce = 5;
/** Servers check only the token. GitHub documents this user name. */
const tokenUser = 'x-access-token';

/**
 * Lets a space use a proven installation, and makes its credential. A repetition replaces the earlier proof. Throws
 * 404, 422 `TOO_MANY_GIT_CREDENTIALS`.
 */
export async function connectInstallation(database: Database, connecting: Connecting, actor: Actor): Promise<void> {
  const { spaceId, provider, installationId, facts, provenBy, repositories } = connecting;
  const proof =
    provenBy === 'operator'
      ? { proof: 'operator', provenBy: 'operator', provenById: null }
      : { proof: 'person', provenBy: provenBy.login, provenById: provenBy.id };
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    const now = new Date();
    const row = {
      ...{ account: facts.account, accountId: facts.accountId, status: facts.status },
      ...{ ...proof, repositories: repositories === 'all' ? 'all' : 'listed' },
      dueAt: new Date(now.getTime() + freshMs),
    };
    if ((await lockInstallation(tx, connecting)) !== undefined) await updateInstallation(tx, connecting, row);
    else {
      const key = { spaceId, provider, installationId };
      await insert(tx, 'git_installations', { ...key, ...row, createdBy: actor.userId, createdAt: now });
    }
    await replaceRepositories(tx, connecting, repositories === 'all' ? [] : repositories);
    await saveCredential(tx, connecting, facts, connecting.gitHost);
    await appendAudit(tx, spaceId, actor, 'git-installation.connected', `${provider}/${installationId}`);
  });
}

/**
 * Updates a space’s credentials to what the provider reports about its installations, and returns the active ones.
 * Nothing changes unless the provider answers for all of them. Throws what `look` does.
 */
export async function syncInstallations(
  database: Database,
  where: { spaceId: string; provider: string; gitHost: string },
  look: LookAtInstallation,
): Promise<{ id: string; name: string }[]> {
  const { spaceId, provider, gitHost } = where;
  const installations = await listInstallations(database, spaceId, provider);
  const said: { installation: GitInstallation; facts: InstallationFacts | undefined }[] = [];
  for (let at = 0; at < installations.length; at += looksAtOnce) {
    const some = installations.slice(at, at + looksAtOnce);
    said.push(
      ...(await Promise.all(
        some.map(async (installation) => ({ installation, facts: await look(installation.installationId) })),
      )),
    );
  }
  return transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    for (const { installation, facts } of said) await applyFacts(tx, installation, facts, gitHost);
    return select<{ id: string; name: string }>(
      tx,
      `SELECT id, name FROM git_credentials WHERE space_id = ? AND provider = ? AND status = 'active' ORDER BY id`,
      [spaceId, provider],
    );
  });
}

/** The same for one installation, for the sweeper. */
export async function syncInstallation(
  database: Database,
  installation: GitInstallation,
  gitHost: string,
  look: LookAtInstallation,
): Promise<void> {
  const facts = await look(installation.installationId);
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, installation.spaceId);
    await applyFacts(tx, installation, facts, gitHost);
  });
}

async function applyFacts(
  tx: Transaction,
  asked: GitInstallation,
  facts: InstallationFacts | undefined,
  gitHost: string,
): Promise<void> {
  const now = await lockInstallation(tx, asked);
  // It was removed while the provider was asked.
  if (now === undefined) return;
  // There was another report or a notification meanwhile, and the newer of the two is unknown: ask again.
  if (now.dueAt.getTime() !== asked.dueAt.getTime()) {
    await updateInstallation(tx, now, { dueAt: new Date() });
    return;
  }
  // If the installation belongs to another account now, the space has no right to its code.
  const isSame = facts !== undefined && facts.accountId === now.accountId;
  const status: GitCredentialStatus = isSame ? facts.status : 'removed';
  const account = isSame ? facts.account : now.account;
  await updateInstallation(tx, now, { status, account, dueAt: new Date(Date.now() + freshMs) });
  await saveCredential(tx, now, { account, status }, gitHost);
}

/** Keeps one credential for each installation. Its tokens are made on demand. */
async function saveCredential(
  tx: Transaction,
  { spaceId, provider, installationId }: InstallationKey,
  { account, status }: { account: string; status: GitCredentialStatus },
  host: string,
): Promise<void> {
  const row = { name: `GitHub ${account}`, host, pathPrefix: `/${account}`, username: tokenUser, status };
  const known = await select<{ id: string }>(
    tx,
    'SELECT id FROM git_credentials WHERE space_id = ? AND provider = ? AND installation_id = ? FOR UPDATE',
    [spaceId, provider, installationId],
  );
  if (known[0] !== undefined) {
    await execute(tx, 'UPDATE git_credentials SET ? WHERE id = ?', [row, known[0].id]);
    return;
  }
  const all = await select(tx, 'SELECT id FROM git_credentials WHERE space_id = ?', [spaceId]);
  if (all.length >= maxCredentials) throw tooManyCredentials();
  const key = { id: newId('gitCredential'), spaceId, provider, installationId };
  await insert(tx, 'git_credentials', { ...key, ...row, sealed: null, createdBy: null, createdAt: new Date() });
}
