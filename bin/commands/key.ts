import { type Command, InvalidArgumentError } from 'commander';
import type { Part } from '../../models/identity/overview.ts';
import { print } from '../support/answer.ts';
import { CommandFailure } from '../support/failure.ts';
import { findActiveUser, findUser, withIdentity } from '../support/installation.ts';
import { addListOptions, dayOf, printList } from '../support/lists.ts';
import { parseName } from '../support/names.ts';

interface KeyOptions {
  user?: string;
  name: string;
  scopes?: string[];
  expires?: Date;
}

/** `atrium key create|list|revoke`: API keys, for programs. */
export function addKey(program: Command): void {
  const keys = program.command('key').description('API keys');

  keys
    .command('create')
    .description('make an API key and print it, once')
    .option('--user <email>', 'for this user instead of the first')
    .option('--name <name>', 'what it is for', parseName, 'atrium key create')
    .option('--scopes <list>', 'what it may do, separated by commas; all that its user may otherwise', parseList)
    .option('--expires <time>', 'when it ends, such as 2027-01-31T00:00:00Z', parseTime)
    .option('--json', 'answer in JSON')
    .action(async (options: KeyOptions, command: Command) => {
      const { row, key } = await withIdentity(async (identity) => {
        const user = await findActiveUser(identity, options.user);
        return identity.keys.create(user.id, {
          name: options.name,
          scopes: options.scopes,
          expiresAt: options.expires,
        });
      });
      print(command, { json: { id: row.id, key, expiresAt: row.expiresAt }, text: key });
    });

  addListOptions(
    keys
      .command('list')
      .description('show the API keys that are not revoked')
      .option('--user <email>', 'of this user alone'),
  ).action(async ({ user, ...part }: Part & { user?: string }, command: Command) => {
    const rows = await withIdentity(async (identity) =>
      identity.overview.keys(part, user === undefined ? undefined : (await findUser(identity, user)).id),
    );
    printList(command, rows, part, {
      none: 'There is no API key.',
      cells: ({ email, name, hint, scopes, createdAt, lastUsedAt, expiresAt }) => [
        email,
        `${hint}…`,
        `since ${dayOf(createdAt)}, ${lastUsedAt === null ? 'never used' : `last used ${dayOf(lastUsedAt)}`}${ending(expiresAt)}`,
        `${name} (${scopes.join(', ')})`,
      ],
    });
  });

  keys
    .command('revoke <id>')
    .description('revoke an API key, and every key that was made with it')
    .option('--json', 'answer in JSON')
    .action(async (id: string, _options: unknown, command: Command) => {
      const isRevoked = await withIdentity(async (identity) => {
        const userId = await identity.overview.ownerOf('key', id);
        return userId !== undefined && (await identity.keys.revoke(userId, id));
      });
      if (!isRevoked) throw new CommandFailure(`There is no API key ${id} that holds.`);
      print(command, { json: { id }, text: `Revoked ${id}, within a second.` });
    });
}

function ending(expiresAt: Date | null): string {
  if (expiresAt === null) return '';
  return `, ${expiresAt.getTime() <= Date.now() ? 'expired' : 'until'} ${dayOf(expiresAt)}`;
}

function parseList(value: string): string[] {
  return value.split(',').map((item) => item.trim());
}

function parseTime(value: string): Date {
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError('It is not a time.');
  return time;
}
