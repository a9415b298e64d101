import type { Command } from 'commander';
import { print } from '../support/answer.ts';
import { findUser, withIdentity } from '../support/installation.ts';
import { parseName } from '../support/names.ts';

/** `atrium space add NAME`. */
export function addSpace(program: Command): void {
  program
    .command('space')
    .description('spaces, which hold everything an agent and its people share')
    .command('add')
    .description('add a space')
    .argument('<name>', 'what people call it', parseName)
    .option('--user <email>', 'its owner, instead of the first user')
    .option('--json', 'answer in JSON')
    .action(async (name: string, options: { user?: string }, command: Command) => {
      const { space, owner } = await withIdentity(async (identity) => {
        const user = await findUser(identity, options.user);
        return { owner: user.email, space: (await identity.spaces.create(user.id, name)).space };
      });
      print(command, {
        json: { id: space.id, name: space.name, owner },
        text: `Added ${space.name} (${space.id}) for ${owner}.`,
      });
    });
}
