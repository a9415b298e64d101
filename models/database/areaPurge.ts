import type { Database } from './database.ts';

/**
 * How an area deletes its rows when a thread or a space is purged. Exactly one area names each table:
 * `test/models/purge.test.ts` compares them with the schema.
 */
export interface AreaPurge {
  /** Tables whose rows are deleted by `turn_id`. */
  ofTurn?: readonly string[];
  /** Tables whose rows are deleted by `thread_id`. */
  ofThread?: readonly string[];
  /** Tables whose rows are deleted by `space_id`. */
  ofSpace?: readonly string[];
  /** Tables that the area's own functions empty. */
  own?: readonly string[];
  /** Tables that stay when a space is purged, with the reason. */
  kept?: Readonly<Record<string, string>>;
  /** Further work for a space, after all of the above. Safe to run again. */
  finish?(database: Database, spaceId: string): Promise<void>;
}
