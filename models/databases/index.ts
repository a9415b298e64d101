import type { Envelope } from '../../crypto/envelope.ts';
import type { Database } from '../database.ts';
import { type Alignment, readAlignment } from './alignment.ts';
import { type ConnectionDetails, readConnectionDetails } from './connectionDetails.ts';
import { type AppDatabase, databaseOfApp } from './connections.ts';
import { createDatabaseWishes, type DatabaseActor, type DatabaseSettings } from './wishes.ts';

/** What of spaces' databases needs their passwords: to ask for one, to get into one, to make the server have it. */
export function createSpaceDatabases(database: Database, envelope: Envelope, settings: DatabaseSettings) {
  return {
    wishes: createDatabaseWishes(database, envelope, settings),

    connection: (asked: { spaceId: string; id: string; actor: DatabaseActor }): Promise<ConnectionDetails> =>
      readConnectionDetails(database, envelope, asked),

    /** For the runs of an app. */
    ofApp: (appId: string): Promise<AppDatabase | undefined> => databaseOfApp(database, envelope, appId),

    alignment: (id: string): Promise<Alignment | undefined> => readAlignment(database, envelope, id),
  };
}

export type SpaceDatabases = ReturnType<typeof createSpaceDatabases>;
