import type { Command } from 'commander';
import { print } from '../support/answer.ts';
import { findActiveUser, withIdentity } from '../support/installation.ts';

/**
 * `atrium token`: prints a session. Anyone with access to the installation's database and master key could make one
 * anyway.
 */
export function addToken(program: Command): void {
  program
    .command('token')
    .description('print a session token, good for 12 hours')
    .option('--user <email>', 'for this user instead of the first')
    .option('--json', 'answer in JSON')
    .action(async (options: { user?: string }, command: Command) => {
      const token = await withIdentity(async (identity) => {
        const user = await findActiveUser(identity, options.user);
        return identity.sessions.createByOperator(user.id, 'atrium token');
      });
      print(command, { json: { sessionToken: token }, text: token });
    });
}
