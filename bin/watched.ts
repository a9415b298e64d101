import { loadConfig } from '../config/index.ts';
import { openDatabase } from '../models/database/database.ts';
import { pendingMigrations } from '../models/migrations/migrate.ts';
import { commandLine } from './support/commandLine.ts';
import { serve } from './support/serve.ts';
import { readyMark } from './support/watchedProduct.ts';

/** `npm run dev` restarts this program: the API and a worker, against parts that already run. */
const [logFile] = process.argv.slice(2);
process.exit(await serve('both', { logFile, onReady: ({ apiUrl }) => void onReady(apiUrl) }));

/**
 * Names the migration steps that the database lacks. Does not run them, because a save may have left a step half
 * written, and a step that has run does not run again.
 */
async function onReady(apiUrl: string | undefined): Promise<void> {
  console.log(`${readyMark}${apiUrl}`);
  try {
    await using database = openDatabase(loadConfig());
    const steps = await pendingMigrations(database);
    if (steps.length === 0) return;
    console.log(`The database is not up to date: run "${commandLine} migrate". It lacks ${steps.join(', ')}.`);
  } catch (error) {
    console.log(`Whether the database is up to date could not be found out: ${error}`);
  }
}
