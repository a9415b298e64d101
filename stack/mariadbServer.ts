import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renameDurablySync } from '../disk/durable.ts';
import { CommandError, runCommand } from './commands.ts';
import type { Durability, StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { timed } from './report.ts';
import { type Service, serviceLog, startService } from './services.ts';
import { giveTo, type ServiceUser, serviceFolder, serviceUser } from './users.ts';
import { waitUntil } from './waiting.ts';

/** In the server's data directory. */
export const socketName = 'mariadb.sock';
const startTimeoutMs = 120_000; // a recovery after a power cut replays the redo log first

export interface MariaDbPrograms {
  server: string;
  installer: string;
}

/** The files of a server, and the user that it runs as. */
export interface ServerPlace {
  name: string;
  folder: string;
  user: ServiceUser | undefined;
  setupFile: string;
}

interface Preparation {
  name: string;
  /** For people. */
  title: string;
  setup: string;
  folders?: string[];
  /** Options that must be set when the data directory is made. */
  initialArgs?: string[];
}

/** Prepares a server before its start: its data directory, the statements that it runs first, and its folders. */
export async function prepareServer(
  context: StackContext,
  { installer }: MariaDbPrograms,
  { name, title, setup, folders = [], initialArgs = [] }: Preparation,
): Promise<ServerPlace> {
  const user = serviceUser(context, name);
  const folder = serviceFolder(context, name, user);
  const setupFile = join(folder, 'setup.sql');
  const place = { name, folder, user, setupFile };
  for (const part of ['tmp', ...folders]) {
    mkdirSync(join(folder, part), { recursive: true, mode: 0o700 });
    giveTo(join(folder, part), user);
  }
  if (!existsSync(join(folder, 'data'))) await initialise(context, installer, { ...place, title }, initialArgs);
  writeFileSync(setupFile, setup, { mode: 0o600 });
  giveTo(setupFile, user);
  return place;
}

/**
 * Fills a new data directory beside its final place, so that the next start begins afresh if this one is interrupted.
 */
async function initialise(
  context: StackContext,
  installer: string,
  { folder, user, name, title }: Pick<ServerPlace, 'folder' | 'user' | 'name'> & Pick<Preparation, 'title'>,
  initialArgs: string[],
): Promise<void> {
  const unfinished = join(folder, 'data.new');
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  giveTo(unfinished, user);
  const args = [
    '--no-defaults',
    `--datadir=${unfinished}`,
    `--tmpdir=${temporaryTables(folder)}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    ...initialArgs,
  ];
  try {
    await timed(context.report, { done: `${title} initialised` }, () =>
      runCommand(installer, args, {
        logFile: serviceLog(context, name),
        environment: context.environment,
        signal: context.signal,
        cwd: folder,
        user,
      }),
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new StackError(
      `MariaDB could not be initialised: ${error.reason} — the whole log is ${serviceLog(context, name)}`,
    );
  }
  renameDurablySync(unfinished, join(folder, 'data'));
}

interface ServerStart {
  title: string;
  port: number;
  /** Added to the arguments of every server of ours. */
  args: string[];
  /** The URL with which to check that the server answers. */
  probe: string;
}

/** Starts a server, and waits until it answers. */
export async function startServer(
  context: StackContext,
  { server }: MariaDbPrograms,
  place: ServerPlace,
  { title, port, args, probe }: ServerStart,
): Promise<Service> {
  const { name, folder, user } = place;
  return timed(context.report, { done: `${title} started` }, async () => {
    const service = await startService(context, {
      name,
      title,
      command: server,
      args: [...serverArguments(place, port), ...args, ...durabilityArguments(context.durability)],
      cwd: folder,
      environment: {},
      user,
    });
    try {
      await waitUntil(() => assertAnswers(probe), {
        ...context,
        title,
        timeoutMs: startTimeoutMs,
        assertAlive: service.assertAlive,
      });
    } catch (error) {
      await service.stop();
      throw error;
    }
    return service;
  });
}

/**
 * A server removes temporary tables from this folder at its start. Each server has its own, so that it does not remove
 * those of others.
 */
const temporaryTables = (folder: string) => join(folder, 'tmp');

function serverArguments({ folder, setupFile }: ServerPlace, port: number): string[] {
  return [
    '--no-defaults',
    `--datadir=${join(folder, 'data')}`,
    `--tmpdir=${temporaryTables(folder)}`,
    '--bind-address=127.0.0.1',
    `--port=${port}`,
    `--socket=${socketName}`, // relative to the data directory, since a full path can be too long for a socket
    '--pid-file=mariadb.pid',
    `--init-file=${setupFile}`,
    '--skip-name-resolve',
    '--character-set-server=utf8mb4',
    '--performance-schema=OFF',
  ];
}

function durabilityArguments(durability: Durability = 'full'): string[] {
  if (durability === 'full') return ['--innodb-flush-log-at-trx-commit=1'];
  return ['--innodb-flush-log-at-trx-commit=0', '--skip-innodb-doublewrite', '--sync-frm=0'];
}

export async function assertAnswers(url: string): Promise<void> {
  // Loaded only while the services start, to not delay them.
  const { default: mysql } = await import('mysql2/promise');
  const connection = await mysql.createConnection({ uri: url, connectTimeout: 2_000 });
  try {
    await connection.query('SELECT 1');
  } finally {
    await connection.end();
  }
}
