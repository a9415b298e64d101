import { type Command, Option } from 'commander';
import type { Role } from '../../models/identity/tables.ts';
import { print } from '../support/answer.ts';
import { commandLine } from '../support/commandLine.ts';
import { withIdentity } from '../support/installation.ts';

/** `atrium member add EMAIL --space ID`: lets the operator add a member without an invitation. */
export function addMember(program: Command): void {
  program
    .command('member')
    .description('who belongs to a space')
    .command('add <email>')
    .description('add a user to a space at once; over the API people are invited, and accept')
    .requiredOption('--space <id>', `the space, as "${commandLine} space add" has printed it`)
    .addOption(
      new Option('--role <role>', 'what they may do there').choices(['owner', 'editor', 'viewer']).default('viewer'),
    )
    .option('--json', 'answer in JSON')
    .action(async (email: string, options: { space: string; role: Role }, command: Command) => {
      const { user, role } = await withIdentity((identity) => identity.members.add(options.space, email, options.role));
      print(command, {
        json: { userId: user.id, email: user.email, spaceId: options.space, role },
        text: `Added ${user.email} to ${options.space} as ${role}.`,
      });
    });
}
