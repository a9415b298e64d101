import type { Command } from 'commander';
import { takeBack } from '../../models/environments/claims.ts';
import { environmentsOfAll, shareEnvironment } from '../../models/environments/sharing.ts';
import type { Part } from '../../models/identity/overview.ts';
import { print } from '../support/answer.ts';
import { withDatabase } from '../support/installation.ts';
import { addListOptions, printList } from '../support/lists.ts';

/** `atrium environment list|share|unshare`: the systems that spaces have built for their computers. */
export function addEnvironment(program: Command): void {
  const environment = program.command('environment').description('systems for computers, which spaces build');
  addListOptions(
    environment.command('list').description('show the environments of all spaces, and which all spaces may use'),
  ).action(async (part: Part, command: Command) => {
    const rows = await withDatabase((database) => environmentsOfAll(database, part));
    printList(command, rows, part, {
      none: 'There is no environment.',
      cells: ({ name, spaceId, spaceName, sharedAt, readyVersion }) => [
        name,
        readyVersion === null ? 'not ready' : `version ${readyVersion}`,
        sharedAt === null ? '' : 'shared',
        `${spaceName} (${spaceId})`,
      ],
    });
  });
  environment
    .command('share <id>')
    .description('let all spaces use an environment, from its newest ready version on')
    .option('--json', 'answer in JSON')
    .action(async (id: string, _options: unknown, command: Command) => {
      const { name, sharedFrom } = await withDatabase((database) => shareEnvironment(database, id, true));
      const from = sharedFrom === null ? 'once a version is ready' : `from version ${sharedFrom} on`;
      const text = `${name} (${id}) may be used by all spaces now, ${from}.`;
      print(command, { json: { id, name, isShared: true, sharedFrom }, text });
    });
  environment
    .command('unshare <id>')
    .description('let only its own space use an environment; computers of others keep what they have')
    .option('--force', 'take it from computers of others that were never started')
    .option('--json', 'answer in JSON')
    .action(async (id: string, { force = false }: { force?: boolean }, command: Command) => {
      const { name, computers } = await withDatabase(async (database) =>
        force ? takeBack(database, id) : { ...(await shareEnvironment(database, id, false)), computers: 0 },
      );
      const taken = force ? ` ${computers} computers of others that were never started have it no more.` : '';
      const text = `${name} (${id}) is only for its own space now.${taken}`;
      print(command, { json: { id, name, isShared: false, ...(force && { computers }) }, text });
    });
}
