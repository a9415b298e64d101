import type { Database } from '../../models/database/database.ts';
import { isLiving } from '../../models/databases/spaceDatabase.ts';

const lookEveryMs = 1_000;

/** Aborted as soon as a database is deleted: nobody waits for the end of what takes long in it then. */
export function whileLiving(database: Database, databaseId: string): { signal: AbortSignal } & Disposable {
  const deleted = new AbortController();
  let isAsking = false;
  const look = async () => {
    if (isAsking) return;
    isAsking = true;
    // Who does not answer is asked again.
    const goesOn = await isLiving(database, databaseId).catch(() => true);
    isAsking = false;
    if (!goesOn) deleted.abort();
  };
  const timer = setInterval(() => void look(), lookEveryMs);
  return { signal: deleted.signal, [Symbol.dispose]: () => clearInterval(timer) };
}
