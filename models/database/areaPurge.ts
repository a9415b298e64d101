import type { Database } from './database.ts';

/**
 * What an area does with its rows when a thread or a space is permanently removed. Each table of the database is named
 * by exactly one area: `test/models/purge.test.ts` compares them with the schema.
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
  /** Further work for a space, after all of the above. Safe to run again. */
  finish?(database: Database, spaceId: string): Promise<void>;
}
