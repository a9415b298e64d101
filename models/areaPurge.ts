import type { Database } from './database.ts';

/**
 * What an area does with its rows when a thread or a space is removed for good. Each table of the database is named by
 * one area, once: `test/models/purge.test.ts` compares them with the schema.
 */
export interface AreaPurge {
  /** Tables whose rows go with their `turn_id`. */
  ofTurn?: readonly string[];
  /** Tables whose rows go with their `thread_id`. */
  ofThread?: readonly string[];
  /** Tables whose rows go with their `space_id`. */
  ofSpace?: readonly string[];
  /** Tables that the area's own functions empty. */
  own?: readonly string[];
  /** Tables that stay when a space goes, with the reason. */
  kept?: Readonly<Record<string, string>>;
  /** What else there is to do for a space, when all of the above is done. Safe to run again. */
  finish?(database: Database, spaceId: string): Promise<void>;
}
