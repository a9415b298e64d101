import type { Command } from 'commander';
import type { Part } from '../../models/identity/overview.ts';
import { print } from '../support/answer.ts';
import { CommandFailure } from '../support/failure.ts';
import { findUser, withIdentity } from '../support/installation.ts';
import { addListOptions, dayOf, printList } from '../support/lists.ts';

/** `atrium session list|revoke`: who is signed in, and on what. */
export function addSession(program: Command): void {
  const sessions = program.command('session').description('sign-ins of people');

  addListOptions(
    sessions.command('list').description('show the sessions that hold').option('--user <email>', 'of this user alone'),
  ).action(async ({ user, ...part }: Part & { user?: string }, command: Command) => {
    const rows = await withIdentity(async (identity) =>
      identity.overview.sessions(part, user === undefined ? undefined : (await findUser(identity, user)).id),
    );
    printList(command, rows, part, {
      none: 'Nobody is signed in.',
      cells: ({ email, label, createdAt }) => [email, `since ${dayOf(createdAt)}`, label ?? ''],
    });
  });

  sessions
    .command('revoke <id>')
    .description('sign somebody out')
    .option('--json', 'answer in JSON')
    .action(async (id: string, _options: unknown, command: Command) => {
      const isRevoked = await withIdentity(async (identity) => {
        const userId = await identity.overview.ownerOf('session', id);
        return userId !== undefined && (await identity.sessions.revoke(userId, id));
      });
      if (!isRevoked) throw new CommandFailure(`There is no session ${id} that holds.`);
      print(command, { json: { id }, text: `Revoked ${id}, within a second.` });
    });
}
