import { DomainError, notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import { forgetInstallation } from './installationRows.ts';

/** The hosting provider reports `suspended` and `removed`. */
export type GitCredentialStatus = 'active' | 'suspended' | 'removed';

/** A credential of a space for a git server, without its secret. */
export interface GitCredential {
  id: string;
  spaceId: string;
  name: string;
  /** As `normaliseHost` spells it, with `:port` where it is not 443. */
  host: string;
  /** The credential is shown only for repositories below this path. */
  pathPrefix: string;
  username: string;
  /** The hosting provider that makes tokens on demand; null if the space has given a password or token. */
  provider: string | null;
  installationId: string | null;
  status: GitCredentialStatus;
  createdBy: string | null;
  createdAt: Date;
}

export const maxCredentials = 200;

const columns =
  'id, space_id, name, host, path_prefix, username, provider, installation_id, status, created_by, created_at';

/** The credentials of spaces for git servers. Their sealed secrets are opened only for a call of the server. */
export function createGitCredentials(database: Database, envelope: Envelope) {
  async function get(spaceId: string, id: string): Promise<GitCredential> {
    const sql = `SELECT ${columns} FROM git_credentials WHERE id = ? AND space_id = ?`;
    const rows = await select<GitCredential>(database.pool, sql, [id, spaceId]);
    if (rows[0] === undefined) throw notFound('credential');
    return rows[0];
  }

  return {
    /** Throws 404. */
    get,

    /** Oldest first; never a secret. */
    async list(spaceId: string, page: PageRequest): Promise<Page<GitCredential>> {
      const sql = `SELECT ${columns} FROM git_credentials WHERE space_id = ?`;
      return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'asc' });
    },

    /** Throws 404, 422 `TOO_MANY_GIT_CREDENTIALS`. A repeated id means the same credential. */
    async add(
      fields: Pick<GitCredential, 'id' | 'spaceId' | 'name' | 'host' | 'pathPrefix' | 'username'> & { secret: string },
      actor: Actor & { userId: string },
    ): Promise<GitCredential> {
      const { id, spaceId, name, host, pathPrefix, username, secret } = fields;
      await keepOutOfLogs([secret]);
      const sealed = await envelope.seal(spaceId, sealedContext(id), Buffer.from(secret, 'utf8'));
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        const known = await select<{ id: string }>(tx, 'SELECT id FROM git_credentials WHERE space_id = ?', [spaceId]);
        if (known.some((credential) => credential.id === id)) return;
        if (known.length >= maxCredentials) throw tooManyCredentials();
        const row = { id, spaceId, name, host, pathPrefix, username, sealed, status: 'active' };
        await insert(tx, 'git_credentials', { ...row, createdBy: actor.userId, createdAt: new Date() });
        await appendAudit(tx, spaceId, actor, 'git-credential.added', id);
      });
      return get(spaceId, id);
    },

    /** Removes a credential. Servers that ask for one then refuse the repositories that name it. Throws 404. */
    async remove(spaceId: string, id: string, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        const [credential] = await select<Pick<GitCredential, 'provider' | 'installationId'>>(
          tx,
          'SELECT provider, installation_id FROM git_credentials WHERE id = ? AND space_id = ? FOR UPDATE',
          [id, spaceId],
        );
        if (credential === undefined) throw notFound('credential');
        await execute(tx, 'DELETE FROM git_credentials WHERE id = ?', [id]);
        // Otherwise the next sync would bring it back.
        const { provider, installationId } = credential;
        if (provider !== null && installationId !== null) {
          await forgetInstallation(tx, { spaceId, provider, installationId });
        }
        await appendAudit(tx, spaceId, actor, 'git-credential.removed', id);
      });
    },

    /** The password or token, for a call of the server; undefined if a hosting provider makes tokens. */
    async secretOf({ id, spaceId }: Pick<GitCredential, 'id' | 'spaceId'>): Promise<string | undefined> {
      const sql = 'SELECT sealed FROM git_credentials WHERE id = ? AND space_id = ?';
      const rows = await select(database.pool, sql, [id, spaceId]);
      if (rows[0] === undefined) throw notFound('credential');
      if (rows[0].sealed === null) return undefined;
      const secret = (await envelope.open(spaceId, sealedContext(id), rows[0].sealed as Buffer)).toString('utf8');
      await keepOutOfLogs([secret]);
      return secret;
    },
  };
}

export type GitCredentials = ReturnType<typeof createGitCredentials>;

export function tooManyCredentials(): DomainError {
  const detail = `A space has at most ${maxCredentials} credentials for git servers. Remove one first.`;
  return new DomainError('unprocessable', 'TOO_MANY_GIT_CREDENTIALS', detail);
}

function sealedContext(id: string): string {
  return `git_credentials/${id}`;
}

/**
 * Whether a credential is for a remote: for exactly its server, and for its path or one above it. Hosting providers
 * ignore case.
 */
export function covers(
  { host, pathPrefix, provider }: Pick<GitCredential, 'host' | 'pathPrefix' | 'provider'>,
  remote: { url: string; path: string },
): boolean {
  if (new URL(remote.url).host !== host) return false;
  const spelled = (text: string) => (provider === null ? text : text.toLowerCase()).replace(/\.git$/, '');
  const [wanted, path] = [spelled(pathPrefix), spelled(`/${remote.path}`)];
  return wanted === '/' || path === wanted || path.startsWith(`${wanted}/`);
}
