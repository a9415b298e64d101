import type { Config } from '../../config/index.ts';
import { createEnvelope, type Envelope, systemScope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { rotateAllKeys } from '../../crypto/keyRotation.ts';
import { type MasterKeyConfig, openMasterKeys } from '../../crypto/openMasterKeys.ts';
import { type RotationReport, rewrapDataKeys } from '../../crypto/rotateKeys.ts';
import type { Database } from '../database/database.ts';
import { createMails } from '../mail/mails.ts';
import { createAcceptInvitation } from './acceptInvitation.ts';
import { createApiKeys } from './apiKeys.ts';
import { createArrivals } from './arrivals.ts';
import { createAuthCodes } from './authCodes.ts';
import { createDataKeyStore } from './dataKeys.ts';
import { createDesktopTokens } from './desktopTokens.ts';
import { createHostTokens } from './hostTokens.ts';
import { createInvitations } from './invitations.ts';
import { createMembers } from './members.ts';
import { createOverview } from './overview.ts';
import { createOwnInvitations } from './ownInvitations.ts';
import { createPendingSignIns } from './pendingSignIns.ts';
import { createSessions } from './sessions.ts';
import { createSessionTokens } from './sessionTokens.ts';
import { createSigningKeys } from './signingKeys.ts';
import { createSpaces } from './spaces.ts';
import { createUsers } from './users.ts';

/** Users, credentials, spaces and memberships. The API and the command line use the same functions. */
export function createIdentity(
  database: Database,
  envelope: Envelope,
  config: Pick<Config, 'installation' | 'signIn'>,
) {
  const signingKeys = createSigningKeys(database, envelope);
  const tokens = createSessionTokens(signingKeys, config.installation);
  const users = createUsers(database);
  const sessions = createSessions(database, tokens);
  const members = createMembers(database, users);
  const spaces = createSpaces(database, members);
  const keys = createApiKeys(database);
  const codes = createAuthCodes(database, sessions);
  const invitations = createInvitations(database);
  const arrivals = createArrivals(database, { users, spaces, sessions, keys }, config.signIn);
  return {
    users,
    spaces,
    members,
    sessions,
    keys,
    codes,
    overview: createOverview(database),
    signingKeys,
    hostTokens: createHostTokens(signingKeys, config.installation),
    desktopTokens: createDesktopTokens(signingKeys, config.installation),
    invitations,
    ownInvitations: createOwnInvitations(database, { users, members }),
    arrivals,
    pendingSignIns: createPendingSignIns(database, envelope),
    acceptInvitation: createAcceptInvitation(database, { users, members, codes, invitations, arrivals }, config.signIn),
    mails: createMails(database, envelope),
  };
}

export type Identity = ReturnType<typeof createIdentity>;

/** Opens this installation's encryption: its master key, and its data keys in the database. */
export async function openEnvelope(database: Database, config: MasterKeyConfig): Promise<Envelope> {
  return createEnvelope(await openMasterKeys(config), createDataKeyStore(database));
}

/** Throws a {@link DecryptionError} when this database is encrypted under another master key. */
export async function checkMasterKey(envelope: Envelope): Promise<void> {
  try {
    await envelope.seal(systemScope, 'readiness', Buffer.alloc(0));
  } catch (error) {
    // Other parts that do not answer have checks of their own.
    if (error instanceof DecryptionError) throw error;
  }
}

/** `atrium rotate-key`: makes new data keys and a new wrapping while the installation runs. */
export async function rotateKeys(database: Database, config: MasterKeyConfig): Promise<RotationReport> {
  return rotateAllKeys(createDataKeyStore(database), config);
}

/**
 * Wraps every data key under the configured master key. The former master key must still be available. Returns the
 * number of rewrapped keys.
 */
export async function rewrapKeys(database: Database, config: MasterKeyConfig): Promise<number> {
  const masterKeys = await openMasterKeys(config);
  return rewrapDataKeys(createDataKeyStore(database), masterKeys, await masterKeys.current());
}
