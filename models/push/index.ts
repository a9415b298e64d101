import type { Envelope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { createPushKeys } from './keys.ts';
import { createPushSubscriptions } from './subscriptions.ts';

/** The push subscriptions, and the installation's key. */
export function createPushStore(database: Database, envelope: Envelope) {
  return { keys: createPushKeys(database, envelope), subscriptions: createPushSubscriptions(database, envelope) };
}

export type PushStore = ReturnType<typeof createPushStore>;
