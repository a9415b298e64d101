import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { searchAttributes } from '../temporal/searchAttributes.ts';
import type { StackContext } from './context.ts';
import { choosePort } from './ports.ts';
import { timed } from './report.ts';
import { type Service, startService } from './services.ts';
import { serviceFolder, serviceUser } from './users.ts';
import { waitUntil } from './waiting.ts';

const usualPort = 7233;
const usualUiPort = 8233;
const startTimeoutMs = 60_000;

/**
 * Measured (design §3, §9): by default the server's one shard is polled 20 times a second, so each hop of a task waits up to 50 ms.
 * With these a turn's start takes a fifth of that.
 */
const dynamicConfig = [
  'system.enableActivityEagerExecution=true',
  'history.transferProcessorMaxPollRPS=5000',
  'history.timerProcessorMaxPollRPS=5000',
];

/** WAL without a sync at each commit: a power cut may lose the last second, which the sweeper makes good from MySQL. */
const sqlitePragmas = ['journal_mode=WAL', 'synchronous=NORMAL'];

export interface TemporalServer {
  service: Service;
  address: string;
  uiUrl: string;
}

/** The Temporal development server, with its database in a file. */
export async function startTemporalServer(context: StackContext, program: string): Promise<TemporalServer> {
  const user = serviceUser(context, 'temporal');
  const folder = serviceFolder(context, 'temporal', user);
  return timed(context.report, { done: 'Temporal started' }, async () => {
    const usual = context.ports === 'usual';
    const port = await choosePort(usual ? usualPort : undefined);
    const uiPort = await choosePort(usual ? usualUiPort : undefined);
    const service = await startService(context, {
      name: 'temporal',
      title: 'The Temporal server',
      command: program,
      args: serverArguments(join(folder, 'temporal.db'), port, uiPort),
      cwd: folder,
      environment: { HOME: folder, TEMPORAL_CONFIG_FILE: join(folder, 'none.toml') },
      user,
    });
    const address = `127.0.0.1:${port}`;
    try {
      await waitUntil(() => assertAnswers(address), {
        ...context,
        timeoutMs: startTimeoutMs,
        assertAlive: service.assertAlive,
      });
    } catch (error) {
      await service.stop();
      throw error;
    }
    return { service, address, uiUrl: `http://127.0.0.1:${uiPort}` };
  });
}

function serverArguments(databaseFile: string, port: number, uiPort: number): string[] {
  // A server that finds its file ignores these; in a new one they stand from the first moment, without the wait for a cache.
  const attributes = existsSync(databaseFile)
    ? []
    : searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`]);
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
    ...['--db-filename', databaseFile, '--log-format', 'json', '--log-level', 'warn'],
    ...sqlitePragmas.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...dynamicConfig.flatMap((value) => ['--dynamic-config-value', value]),
    ...attributes,
  ];
}

/** The server listens before its default namespace is made: wait for that one. */
async function assertAnswers(address: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    await connection.workflowService.describeNamespace({ namespace: 'default' });
  } finally {
    await connection.close();
  }
}
