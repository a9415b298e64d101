import { type Command, InvalidArgumentError } from 'commander';
import { print } from '../support/answer.ts';
import { findUser, withIdentity } from '../support/installation.ts';
import { parseName } from '../support/names.ts';

interface KeyOptions {
  user?: string;
  name: string;
  scopes?: string[];
  expires?: Date;
}

/** `atrium key create`: an API key, for programs. */
export function addKey(program: Command): void {
  program
    .command('key')
    .description('API keys')
    .command('create')
    .description('make an API key and print it, once')
    .option('--user <email>', 'for this user instead of the first')
    .option('--name <name>', 'what it is for', parseName, 'atrium key create')
    .option('--scopes <list>', 'what it may do, separated by commas; all that its user may otherwise', parseList)
    .option('--expires <time>', 'when it ends, such as 2027-01-31T00:00:00Z', parseTime)
    .option('--json', 'answer in JSON')
    .action(async (options: KeyOptions, command: Command) => {
      const { row, key } = await withIdentity(async (identity) => {
        const user = await findUser(identity, options.user);
        return identity.keys.create(user.id, {
          name: options.name,
          scopes: options.scopes,
          expiresAt: options.expires,
        });
      });
      print(command, { json: { id: row.id, key, expiresAt: row.expiresAt }, text: key });
    });
}

function parseList(value: string): string[] {
  return value.split(',').map((item) => item.trim());
}

function parseTime(value: string): Date {
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError('It is not a time.');
  return time;
}
