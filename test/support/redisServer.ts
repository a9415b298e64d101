import { randomBytes } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { findProgram } from '../../stack/context.ts';
import { canInstall, installPackages } from '../../stack/install.ts';
import { choosePort } from '../../stack/ports.ts';
import { tied } from '../../stack/tied.ts';
import { temporaryFolder } from './folders.ts';
import { start, type TestProcess } from './processes.ts';
import { createStackContext } from './stackContext.ts';
import { waitFor } from './waitFor.ts';

/** A private Redis for a test, with a password. It stores nothing on disk. */
export interface RedisServer {
  url: string;
  /** Sends a command over a new connection. */
  command(...args: string[]): Promise<unknown>;
  /** Kills it, as a machine that loses power would. */
  kill(): Promise<void>;
  /** Suspends it: connections stay open, but get no answers. */
  freeze(): void;
  thaw(): void;
  /** Starts it again at the same address. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Debian's server package is a link to this program plus a system service, which tests do not need. */
const serverElsewhere = 'redis-check-rdb';

/** Whether this machine has Redis or can install it. Otherwise prints that the tests are left out. */
export function canHaveRedis(): boolean {
  if (findRedis() !== undefined || canInstall({ environment: process.env })) return true;
  process.stderr.write(
    'LEFT OUT: tests with Redis. This machine has no redis-server (Debian: apt-get install redis-tools).\n',
  );
  return false;
}

function findRedis(): string | undefined {
  return findProgram('redis-server', process.env) ?? findProgram(serverElsewhere, process.env);
}

export async function startRedisServer(): Promise<RedisServer> {
  if (findRedis() === undefined) await installPackages(createStackContext(), ['redis-tools'], 'Redis');
  // The program acts as a server only under this name.
  const program = join(temporaryFolder(), 'redis-server');
  symlinkSync(findRedis() ?? '', program);
  const port = await choosePort();
  const password = randomBytes(12).toString('hex');
  const url = `redis://:${password}@127.0.0.1:${port}`;
  const args = [
    '--bind',
    '127.0.0.1',
    '--port',
    `${port}`,
    '--requirepass',
    password,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  let running: TestProcess;

  const server: RedisServer = {
    url,
    async command(...command) {
      const client = createClient({ url, socket: { reconnectStrategy: false } });
      client.on('error', () => undefined);
      await client.connect();
      try {
        return await client.sendCommand(command);
      } finally {
        client.destroy();
      }
    },
    async kill() {
      running.child.kill('SIGKILL');
      await running.exited;
    },
    freeze: () => void running.child.kill('SIGSTOP'),
    thaw: () => void running.child.kill('SIGCONT'),
    async restart() {
      const [command, ...rest] = tied(process.env, [program, ...args]);
      running = start(command, rest);
      await waitFor('Redis to answer', () => {
        if (running.child.exitCode !== null) throw new Error(`Redis ended:\n${running.output()}`);
        return server.command('PING').catch(() => undefined);
      });
    },
    async stop() {
      server.thaw();
      await server.kill();
    },
  };
  await server.restart();
  return server;
}
