import type { Command } from 'commander';
import { print } from '../support/answer.ts';
import { findActiveUser, withIdentity } from '../support/installation.ts';

/** `atrium code`: a one-time code, which `POST /auth/exchange-code` turns into a session on another device. */
export function addCode(program: Command): void {
  program
    .command('code')
    .description('print a one-time code for signing in, good for 60 seconds')
    .option('--user <email>', 'for this user instead of the first')
    .option('--json', 'answer in JSON')
    .action(async (options: { user?: string }, command: Command) => {
      const { code, expiresAt } = await withIdentity(async (identity) => {
        const user = await findActiveUser(identity, options.user);
        return identity.codes.create(user.id);
      });
      print(command, { json: { code, expiresAt }, text: code });
    });
}
