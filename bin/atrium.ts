import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addBackup, addRestore } from './commands/backup.ts';
import { addBilling } from './commands/billing.ts';
import { addBuildGvisor } from './commands/buildGvisor.ts';
import { addCode } from './commands/code.ts';
import { addDoctor } from './commands/doctor.ts';
import { addGit } from './commands/git.ts';
import { addHost } from './commands/host.ts';
import { addKey } from './commands/key.ts';
import { addMember } from './commands/member.ts';
import { addMigrate } from './commands/migrate.ts';
import { addReplaceAuthority } from './commands/replaceAuthority.ts';
import { addRotateKey } from './commands/rotateKey.ts';
import { addApiAndWorker } from './commands/serve.ts';
import { addSession } from './commands/session.ts';
import { addSpace } from './commands/space.ts';
import { addStatus } from './commands/status.ts';
import { addToken } from './commands/token.ts';
import { addUp } from './commands/up.ts';
import { addUser } from './commands/user.ts';
import { commandLine } from './support/commandLine.ts';
import { describeFailure } from './support/failure.ts';

/** The operator's command line, which npm runs on Node 24, whatever the machine's own is. */
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const program = new Command(commandLine)
  .version(version)
  .description('A self-hosted backend for AI-agent workspaces.')
  .showHelpAfterError(`(${commandLine} --help lists the commands)`);

const areas = [
  addUp,
  addApiAndWorker,
  addDoctor,
  addStatus,
  addMigrate,
  addToken,
  addCode,
  addUser,
  addSpace,
  addMember,
  addKey,
  addSession,
  addRotateKey,
  addReplaceAuthority,
  addHost,
  addBuildGvisor,
  addBilling,
  addGit,
  addBackup,
  addRestore,
];
for (const add of areas) add(program);
for (const command of program.commands) pointToHelp(command, commandLine);

try {
  await program.parseAsync();
} catch (error) {
  console.error(describeFailure(error));
  process.exit(1);
}

/** After an error, to the help of the command itself. */
function pointToHelp(command: Command, parent: string): void {
  const line = `${parent} ${command.name()}`;
  const names = command.commands.map((one) => one.name());
  const has = names.length === 0 ? 'its options' : `its options and commands: ${names.join(', ')}`;
  command.showHelpAfterError(`(${line} --help tells ${has})`);
  for (const one of command.commands) pointToHelp(one, line);
}
