import type { Command } from 'commander';
import { print } from '../support/answer.ts';
import { withIdentity } from '../support/installation.ts';
import { parseName } from '../support/names.ts';

/** `atrium user add EMAIL`. */
export function addUser(program: Command): void {
  program
    .command('user')
    .description('users of this installation')
    .command('add <email>')
    .description('add a user, who signs in with a code ("atrium code --user EMAIL")')
    .option('--name <name>', 'shown to others; the address up to the @ otherwise', parseName)
    .option('--json', 'answer in JSON')
    .action(async (email: string, options: { name?: string }, command: Command) => {
      const { id, email: address, name } = await withIdentity((identity) => identity.users.add(email, options.name));
      print(command, { json: { id, email: address, name }, text: `Added ${address} (${id}).` });
    });
}
