import type { Command } from 'commander';
import { counted } from '../../base/text.ts';
import type { Part } from '../../models/identity/overview.ts';
import { print } from '../support/answer.ts';
import { CommandFailure } from '../support/failure.ts';
import { findActiveUser, withIdentity } from '../support/installation.ts';
import { addListOptions, dayOf, printList } from '../support/lists.ts';
import { parseName } from '../support/names.ts';

/** `atrium space add|list|delete`. */
export function addSpace(program: Command): void {
  const space = program.command('space').description('spaces, which hold everything an agent and its people share');

  space
    .command('add')
    .description('add a space')
    .argument('<name>', 'what people call it', parseName)
    .option('--user <email>', 'its owner, instead of the first user')
    .option('--json', 'answer in JSON')
    .action(async (name: string, options: { user?: string }, command: Command) => {
      const { made, owner } = await withIdentity(async (identity) => {
        const user = await findActiveUser(identity, options.user);
        return { owner: user.email, made: (await identity.spaces.create(user.id, name)).space };
      });
      print(command, {
        json: { id: made.id, name: made.name, owner },
        text: `Added ${made.name} (${made.id}) for ${owner}.`,
      });
    });

  addListOptions(space.command('list').description('show the spaces, in the order in which they were made')).action(
    async (part: Part, command: Command) => {
      const rows = await withIdentity((identity) => identity.overview.spaces(part));
      printList(command, rows, part, {
        none: 'There is no space.',
        cells: ({ name, owners, members, createdAt }) => [
          owners.join(', '),
          `${counted(members, 'member')}, since ${dayOf(createdAt)}`,
          name,
        ],
      });
    },
  );

  space
    .command('delete <id>')
    .description('delete a space for everybody, with its chats, files, computers, repositories and databases')
    .option('--yes', 'really: nothing brings it back')
    .option('--json', 'answer in JSON')
    .action(async (id: string, options: { yes?: boolean }, command: Command) => {
      const { name, operationId } = await withIdentity(async (identity) => {
        const found = await identity.spaces.byId(id);
        if (found === undefined) throw new CommandFailure(`There is no space ${id}.`);
        if (options.yes !== true) {
          throw new CommandFailure(`This deletes ${found.name} and everything in it. If that is meant, add --yes.`);
        }
        return { name: found.name, operationId: (await identity.spaces.remove(id, found.createdBy)).id };
      });
      // The sweeper of a running Atrium starts the workflow that empties the space.
      const text = `Deleted ${name}. Nobody sees it any more; a running Atrium empties it within minutes.`;
      print(command, { json: { id, name, operationId }, text });
    });
}
