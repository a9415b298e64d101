import type { Config } from '../../config/index.ts';
import { openDatabase } from '../../models/database/database.ts';
import { installationOf } from '../../models/installation/installation.ts';
import { off, ok } from './check.ts';
import { commandLine } from './commandLine.ts';

const whatWaits = 'automations, schedules, webhooks and mail wait';

/** Shown after a restore. */
export const quietAdvice = `It is quiet: ${whatWaits} until "${commandLine} resume". Resume it once the original runs no more.`;

export function describeQuiet(since: Date): string {
  return `since ${since.toISOString()}: ${whatWaits}; "${commandLine} resume" lets them go on`;
}

export async function checkQuiet(config: Pick<Config, 'database'>) {
  await using database = openDatabase(config);
  const { quietSince } = await installationOf(database).catch(whereNotMigrated);
  return quietSince === null
    ? ok('no: it is not a restored copy, or it has been resumed')
    : off(describeQuiet(quietSince));
}

const noSuchTable = 1146;

function whereNotMigrated(error: { errno?: number }): { quietSince: null } {
  if (error.errno !== noSuchTable) throw error;
  return { quietSince: null };
}
