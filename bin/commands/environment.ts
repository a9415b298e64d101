import type { Command } from 'commander';
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
  for (const [name, isShared, description, done] of [
    ['share', true, 'let all spaces use an environment', 'may be used by all spaces now'],
    [
      'unshare',
      false,
      'let only its own space use an environment; computers of others keep what they have',
      'is only for its own space now',
    ],
  ] as const) {
    environment
      .command(`${name} <id>`)
      .description(description)
      .option('--json', 'answer in JSON')
      .action(async (id: string, _options: unknown, command: Command) => {
        const shared = await withDatabase((database) => shareEnvironment(database, id, isShared));
        print(command, { json: { id, name: shared.name, isShared }, text: `${shared.name} (${id}) ${done}.` });
      });
  }
}
