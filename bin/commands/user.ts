import type { Command } from 'commander';
import { counted } from '../../base/text.ts';
import { transaction } from '../../models/database/database.ts';
import type { Part } from '../../models/identity/overview.ts';
import { print } from '../support/answer.ts';
import { commandLine } from '../support/commandLine.ts';
import { findUser, withIdentity } from '../support/installation.ts';
import { addListOptions, dayOf, printList } from '../support/lists.ts';
import { parseName } from '../support/names.ts';

const spaceName = 'Home';

/** `atrium user add|list|disable|enable`. */
export function addUser(program: Command): void {
  const user = program.command('user').description('users of this installation');

  // Each user gets a space, since a first message needs one.
  user
    .command('add <email>')
    .description(`add a user, who signs in with a code ("${commandLine} code --user EMAIL")`)
    .option('--name <name>', 'shown to others; the address up to the @ otherwise', parseName)
    .option('--no-space', 'add no space of their own: they will be invited to one')
    .option('--json', 'answer in JSON')
    .action(async (email: string, options: { name?: string; space: boolean }, command: Command) => {
      const { added, space } = await withIdentity((identity, database) =>
        transaction(database, async (tx) => {
          const row = await identity.users.add(email, options.name, tx);
          const made = options.space ? await identity.spaces.create(row.id, spaceName, { tx }) : undefined;
          return { added: row, space: made };
        }),
      );
      const { id, email: address, name } = added;
      const spaceId = space?.space.id ?? null;
      const where = spaceId === null ? '' : `, with a space (${spaceId})`;
      print(command, { json: { id, email: address, name, spaceId }, text: `Added ${address} (${id})${where}.` });
    });

  addListOptions(user.command('list').description('show the users, in the order in which they came')).action(
    async (part: Part, command: Command) => {
      const rows = await withIdentity((identity) => identity.overview.users(part));
      printList(command, rows, part, {
        none: 'There is no user.',
        cells: ({ email, name, spaces, createdAt, disabledAt }) => [
          email,
          `${counted(spaces, 'space')}, since ${dayOf(createdAt)}${disabledAt === null ? '' : `, disabled ${dayOf(disabledAt)}`}`,
          name,
        ],
      });
    },
  );

  addSwitch(user, true, 'end all sessions of a user, let their API keys rest, and run nothing in their name any more');
  addSwitch(user, false, 'let a disabled user in again; their API keys hold again, and they sign in anew');
}

function addSwitch(user: Command, isDisabled: boolean, description: string): void {
  user
    .command(`${isDisabled ? 'disable' : 'enable'} <email>`)
    .description(description)
    .option('--json', 'answer in JSON')
    .action(async (email: string, _options: unknown, command: Command) => {
      const { id, hasChanged } = await withIdentity(async (identity) => {
        const found = await findUser(identity, email);
        return { id: found.id, hasChanged: await identity.users.setDisabled(found.id, isDisabled) };
      });
      const state = isDisabled ? 'disabled' : 'enabled';
      const text = hasChanged ? `${email} is ${state}, within a second.` : `${email} was ${state} already.`;
      print(command, { json: { id, disabled: isDisabled, changed: hasChanged }, text });
    });
}
