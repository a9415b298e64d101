import type { Envelope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import type { AccountPurpose } from './accounts.ts';
import { type Alignment, readAlignment } from './alignment.ts';
import { giveAtriumAccounts, readAtriumAccount, readOwnAccount } from './atriumAccounts.ts';
import { type ConnectionDetails, readConnectionDetails } from './connectionDetails.ts';
import { type AppDatabase, databaseOfApp } from './connections.ts';
import { namesOf } from './names.ts';
import { createDatabaseWishes, type DatabaseActor, type DatabaseSettings } from './wishes.ts';

/** The operations on spaces' databases that need passwords. */
export function createSpaceDatabases(database: Database, envelope: Envelope, settings: DatabaseSettings) {
  return {
    wishes: createDatabaseWishes(database, envelope, settings),

    connection: (asked: { spaceId: string; id: string; actor: DatabaseActor }): Promise<ConnectionDetails> =>
      readConnectionDetails(database, envelope, asked),

    /** For the runs of an app. */
    ofApp: (appId: string): Promise<AppDatabase | undefined> => databaseOfApp(database, envelope, appId),

    alignment: async (id: string): Promise<Alignment | undefined> => {
      await giveAtriumAccounts(database, envelope, namesOf(settings.installation), id);
      return readAlignment(database, envelope, id);
    },

    /** The account with which the space writes to the database. */
    ownerOf: (id: string): Promise<{ user: string; password: string } | undefined> =>
      readOwnAccount(database, envelope, id),

    /** The account with which Atrium reads a database. Undefined while the server does not have it. */
    readerOf: (id: string, purpose: AccountPurpose): Promise<{ user: string; password: string } | undefined> =>
      readAtriumAccount(database, envelope, id, purpose),
  };
}

export type SpaceDatabases = ReturnType<typeof createSpaceDatabases>;
