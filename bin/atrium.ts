import { Command } from 'commander';
import { programVersion } from '../models/migrations/version.ts';
import { addApiAndWorker } from './commands/serve.ts';
import { addUp } from './commands/up.ts';
import { commandLine } from './support/commandLine.ts';

/** The operator's command line. npm runs it on Node 24, even where the machine has another version. */
const program = new Command(commandLine)
  .version(programVersion)
  .description('A self-hosted backend for AI-agent workspaces.')
  .showHelpAfterError(`(${commandLine} --help lists the commands)`);

addUp(program);
addApiAndWorker(program);
// Operating commands load only when one is asked for, so that the commands that run Atrium start sooner.
if (!program.commands.some((command) => command.name() === process.argv[2])) {
  const { addOperating } = await import('./commands/operating.ts');
  addOperating(program);
}
for (const command of program.commands) pointToHelp(command, commandLine);

try {
  await program.parseAsync();
} catch (error) {
  const { describeFailure } = await import('./support/failure.ts');
  console.error(describeFailure(error));
  process.exit(1);
}

/** After an error, refers to the help of the command itself. */
function pointToHelp(command: Command, parent: string): void {
  const line = `${parent} ${command.name()}`;
  const names = command.commands.map((one) => one.name());
  const has = names.length === 0 ? 'its options' : `its options and commands: ${names.join(', ')}`;
  command.showHelpAfterError(`(${line} --help tells ${has})`);
  for (const one of command.commands) pointToHelp(one, line);
}
