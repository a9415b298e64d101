import type { Command } from 'commander';
import { transaction } from '../../models/database.ts';
import { print } from '../support/answer.ts';
import { commandLine } from '../support/commandLine.ts';
import { withIdentity } from '../support/installation.ts';
import { parseName } from '../support/names.ts';

const spaceName = 'Home';

/** `atrium user add EMAIL`. Their first message needs a space, so they get one. */
export function addUser(program: Command): void {
  program
    .command('user')
    .description('users of this installation')
    .command('add <email>')
    .description(`add a user, who signs in with a code ("${commandLine} code --user EMAIL")`)
    .option('--name <name>', 'shown to others; the address up to the @ otherwise', parseName)
    .option('--no-space', 'add no space of their own: they will be invited to one')
    .option('--json', 'answer in JSON')
    .action(async (email: string, options: { name?: string; space: boolean }, command: Command) => {
      const { user, space } = await withIdentity((identity, database) =>
        transaction(database, async (tx) => {
          const added = await identity.users.add(email, options.name, tx);
          const made = options.space ? await identity.spaces.create(added.id, spaceName, { tx }) : undefined;
          return { user: added, space: made };
        }),
      );
      const { id, email: address, name } = user;
      const spaceId = space?.space.id ?? null;
      const where = spaceId === null ? '' : `, with a space (${spaceId})`;
      print(command, { json: { id, email: address, name, spaceId }, text: `Added ${address} (${id})${where}.` });
    });
}
