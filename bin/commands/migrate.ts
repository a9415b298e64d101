import type { Command } from 'commander';
import { migrateInstallation } from '../../models/migrations/migrate.ts';
import { print } from '../support/answer.ts';
import { loadCommandConfig } from '../support/installation.ts';

/**
 * `atrium migrate`: brings the database and the search attributes of the Temporal namespace up to date. For production;
 * `up` does both by itself.
 */
export function addMigrate(program: Command): void {
  program
    .command('migrate')
    .description('bring the database and the Temporal namespace up to date')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const { registerWhereAllowed } = await import('../support/temporal.ts');
      const config = loadCommandConfig();
      const done = {
        migrations: await migrateInstallation(config),
        searchAttributes: await registerWhereAllowed(config),
      };
      const lines = [
        ...done.migrations.map((name) => `Ran ${name}`),
        ...done.searchAttributes.map((name) => `Registered ${name}`),
      ];
      print(command, { json: done, text: lines.length === 0 ? 'Everything is up to date.' : lines.join('\n') });
    });
}
