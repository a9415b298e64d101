import type { Envelope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { createDynamicSecrets } from './dynamicSecrets.ts';
import { createRedactors } from './redactors.ts';
import { createSecrets } from './secrets.ts';

/** All stores of secrets, over one database and its encryption. */
export function createSecretStore(database: Database, envelope: Envelope) {
  return {
    named: createSecrets(database, envelope),
    dynamic: createDynamicSecrets(database, envelope),
    redactors: createRedactors(database, envelope),
  };
}

export type SecretStore = ReturnType<typeof createSecretStore>;
