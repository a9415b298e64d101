import type { Migration } from '../migrations/migration.ts';
import type { Database } from './database.ts';

/**
 * The tables of an area, and what it does with their rows when a thread or a space is permanently removed. Each table is
 * named by exactly one area: `test/models/purge.test.ts` compares these names with the database.
 */
export interface AreaSchema {
  /** Makes the tables of the area in a new database. Later changes are further steps in `migrations/index.ts`. */
  initial?: Migration;
  /** Tables whose rows go with their `turn_id`. */
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
