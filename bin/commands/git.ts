import { type Command, InvalidArgumentError } from 'commander';
import { createGitHosting } from '../../integrations/gitHosting/index.ts';
import { operator } from '../../models/audit/audit.ts';
import { connectInstallation } from '../../models/git/installations.ts';
import { columns, print } from '../support/answer.ts';
import { commandLine } from '../support/commandLine.ts';
import { CommandFailure } from '../support/failure.ts';
import { loadCommandConfig, withDatabase } from '../support/installation.ts';

/** `atrium git …`: installations of the GitHub App. The operator sees those of all customers. */
export function addGit(program: Command): void {
  const git = program.command('git').description('installations of the GitHub App');

  git
    .command('installations')
    .description('list the installations of the App, of all its customers')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const found = await Array.fromAsync(createGitHosting(loadCommandConfig()).require('tokens').installations());
      const rows = found.map(({ id, account, status }) => [
        id,
        `${account}${status === 'active' ? '' : ` (${status})`}`,
      ]);
      const text = found.length === 0 ? 'The App is installed nowhere.' : columns(rows as [string, string][]);
      print(command, { json: found, text });
    });

  git
    .command('claim')
    .description(
      'let a space use all repositories of an installation, on the operator’s word; people prove theirs by themselves',
    )
    .argument('<installation>', `its id, as "${commandLine} git installations" prints it`, parseId)
    .requiredOption('--space <id>', `the space, as "${commandLine} space add" has printed it`)
    .option('--json', 'answer in JSON')
    .action(async (installationId: string, { space: spaceId }: { space: string }, command: Command) => {
      const facts = await withDatabase(async (database, config) => {
        const { name: provider, gitHost, installation } = createGitHosting(config).require('tokens');
        const found = await installation(installationId);
        if (found === undefined)
          throw new CommandFailure(`GitHub knows no installation ${installationId} of this App.`);
        const proof = { provenBy: 'operator', repositories: 'all' } as const;
        await connectInstallation(
          database,
          { spaceId, provider, installationId, gitHost, facts: found, ...proof },
          operator,
        );
        return found;
      });
      print(command, {
        json: { spaceId, installationId, account: facts.account, status: facts.status },
        text: `The space ${spaceId} may use the repositories of ${facts.account} at GitHub.`,
      });
    });
}

function parseId(text: string): string {
  if (/^\d{1,15}$/.test(text)) return text;
  throw new InvalidArgumentError('An installation’s id is a number.');
}
