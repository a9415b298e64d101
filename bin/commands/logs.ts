import { type Command, InvalidArgumentError, Option } from 'commander';
import { loadLaunchConfig } from '../../config/launch.ts';
import { CommandFailure } from '../support/failure.ts';
import { findLogs, type Level, type LogLine, levels, readLogs } from '../support/logs.ts';
import { findRunning } from '../support/running.ts';

interface Options {
  follow?: true;
  level: Level;
  id?: string;
  lines: number;
  json?: true;
}

/** `atrium logs`: what Atrium, its parts and the holders of its computers have logged on this machine. */
export function addLogs(program: Command): void {
  program
    .command('logs [part...]')
    .description('show the log of Atrium and of its parts: atrium, database, tenants, temporal, storage, computers')
    .option('-f, --follow', 'go on with what is written from now on, until Ctrl-C')
    .addOption(new Option('--level <level>', 'only lines of this level and above').choices(levels).default('trace'))
    .option('--id <id>', 'only lines that have this id: of a request, a turn, a computer')
    .option('--lines <count>', 'how many of the last lines', readCount, 100)
    .option('--json', 'one line of JSON for each line')
    .action(async (parts: string[], { follow, level, id, lines, json }: Options) => {
      const launch = loadLaunchConfig();
      const { dataDir } = launch;
      const computersDir = findRunning(dataDir)?.environment.ATRIUM_COMPUTERS_DIR ?? launch.computersDir;
      const find = () => findLogs({ dataDir, computersDir });
      const files = find();
      if (files.length === 0) {
        throw new CommandFailure(
          `There are no logs in ${dataDir}. "npm start" keeps them there; "atrium api" and "atrium worker" write to standard error, which whatever has started them keeps.`,
        );
      }
      const unknown = parts.find((part) => !files.some((file) => file.part === part));
      if (unknown !== undefined && follow === undefined) {
        throw new CommandFailure(
          `There is no log of ${unknown} here. There are: ${files.map(({ part }) => part).join(', ')}.`,
        );
      }
      // The reader may close the pipe, as `| head` does.
      process.stdout.on('error', () => process.exit(0));
      const query = { parts, level, id };
      let isEmpty = true;
      for await (const line of readLogs(find, query, { most: lines, follow: follow === true })) {
        isEmpty = false;
        console.log(json === true ? toJson(line) : toText(line));
      }
      if (isEmpty && id !== undefined && lines > 0) console.error(`Nothing in the logs names ${id}.`);
    });
}

function toText({ part, time, level, text }: LogLine): string {
  const at = time === 0 ? '' : new Date(time).toISOString();
  return `${at.padEnd(24)} ${level.padEnd(5)} ${part.padEnd(9)} ${withoutControls(text)}`;
}

function toJson({ part, time, level, text }: LogLine): string {
  return JSON.stringify({ part, time: time === 0 ? null : new Date(time).toISOString(), level, text });
}

/** Logged text must not control the terminal that shows it. */
function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (char) => (char === '\t' ? char : JSON.stringify(char).slice(1, -1)));
}

function readCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 0 && count <= 100_000) return count;
  throw new InvalidArgumentError('A number of lines, at most 100000.');
}
