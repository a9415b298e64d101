import type { Envelope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import type { AccountPurpose } from './accounts.ts';
import { type Alignment, readAlignment } from './alignment.ts';
import { giveAtriumAccounts, readAccount } from './atriumAccounts.ts';
import { type ConnectionDetails, readConnectionDetails } from './connectionDetails.ts';
import { type AppDatabase, databaseOfApp } from './connections.ts';
import { namesOf } from './names.ts';
import { type Asked, createDatabaseWishes, type DatabaseSettings } from './wishes.ts';

/** The operations on spaces' databases that need passwords. */
export function createSpaceDatabases(database: Database, envelope: Envelope, settings: DatabaseSettings) {
  return {
    wishes: createDatabaseWishes(database, envelope, settings),

    connection: (asked: Asked): Promise<ConnectionDetails> => readConnectionDetails(database, envelope, asked),

    /** For the runs of an app. */
    ofApp: (appId: string): Promise<AppDatabase | undefined> => databaseOfApp(database, envelope, appId),

    alignment: async (id: string): Promise<Alignment | undefined> => {
      await giveAtriumAccounts(database, envelope, namesOf(settings.installation), id);
      return readAlignment(database, envelope, id);
    },

    /** The account with which the space writes to the database. */
    ownerOf: (id: string): Promise<{ user: string; password: string } | undefined> =>
      readAccount(database, envelope, id, null),

    /** The account with which Atrium reads a database. Undefined while the server does not have it. */
    readerOf: (id: string, purpose: AccountPurpose): Promise<{ user: string; password: string } | undefined> =>
      readAccount(database, envelope, id, purpose),
  };
}

export type SpaceDatabases = ReturnType<typeof createSpaceDatabases>;
