import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { searchAttributes } from '../temporal/searchAttributes.ts';
import type { StackContext } from './context.ts';
import type { GateOrder } from './gate/messages.ts';
import { findPrivateNetwork } from './gate/privateNetwork.ts';
import { uiLink } from './gate/uiFront.ts';
import { choosePort, listenOn, listenOnFree } from './ports.ts';
import { timed } from './report.ts';
import { type Service, startService } from './services.ts';
import { tied } from './tied.ts';
import { type ServiceUser, serviceFolder, serviceUser } from './users.ts';
import { waitUntil } from './waiting.ts';

const usualPort = 7233;
const usualUiPort = 8233;
/** Ports in the private network, where no other process uses any. */
const innerPorts = { server: usualPort, ui: usualUiPort };
const grpcNotFound = 5;
const startTimeoutMs = 180_000; // for a slow disk, or a machine busy with other starts

/**
 * By default the server's one shard is polled 20 times a second, so each hop of a task waits up to 50 ms. With these
 * values the start of a turn takes a fifth of that.
 */
const dynamicConfig = [
  'system.enableActivityEagerExecution=true',
  'history.transferProcessorMaxPollRPS=5000',
  'history.timerProcessorMaxPollRPS=5000',
  // Writes the list of workflows once a second. A workflow that has ended by then is written once instead of twice. The
  // two writes of a short turn were two fifths of the server's work for it.
  'history.visibilityProcessorMaxPollRPS=1',
  'history.visibilityTaskBatchSize=1000',
  // The default is meant for tests: it makes the server read all search attributes again at each start of a workflow.
  // When off, a newly registered attribute can be used after 2 s.
  'system.forceSearchAttributesCacheRefreshOnRead=false',
  // The HTTP API cannot be turned off. No page can have this host name (RFC 6761).
  'frontend.httpAllowedHosts=["none.invalid"]',
];

/** WAL without a sync at each commit. A power cut may lose the last second; the sweeper restores it from MySQL. */
const sqlitePragmas = ['journal_mode=WAL', 'synchronous=NORMAL'];

export interface TemporalServer {
  service: Service;
  port: number;
  ui: Ui | undefined;
  address: string;
  /** The link with the key. Undefined where the server cannot be shut off from others; there is no UI then. */
  uiUrl: string | undefined;
  /** Why other users of this machine can reach the server, if they can. */
  openBecause: string | undefined;
}

interface Ui {
  port: number;
  key: string;
}

interface StartOptions {
  context: StackContext;
  program: string;
  folder: string;
  user: ServiceUser | undefined;
  port: number;
  formerUi: Ui | undefined;
}

/**
 * Starts the Temporal development server, with its database in a file. It has no authentication. So where the system
 * allows it, it runs in its own network namespace behind a gate that lets only us in. Elsewhere it runs without UI and
 * HTTP API, since a web page could misuse those. With `former` it reuses those ports, also for the UI.
 */
export async function startTemporalServer(
  context: StackContext,
  program: string,
  former?: Pick<TemporalServer, 'port' | 'ui'>,
): Promise<TemporalServer> {
  const user = serviceUser(context, 'temporal');
  const folder = serviceFolder(context, 'temporal', user);
  return timed(context.report, { done: 'Temporal started' }, async () => {
    const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
    const options = { context, program, folder, user, port, formerUi: former?.ui };
    const network = findPrivateNetwork(context.environment);
    const started =
      'missing' in network
        ? { service: await startOpen(options), ui: undefined, openBecause: network.missing }
        : { ...(await startGated(options, network.wrap)), openBecause: undefined };
    const address = `127.0.0.1:${port}`;
    try {
      await waitUntil(() => assertAnswers(address), {
        ...context,
        title: 'The Temporal server',
        timeoutMs: startTimeoutMs,
        assertAlive: started.service.assertAlive,
      });
    } catch (error) {
      await started.service.stop();
      throw error;
    }
    const uiUrl = started.ui && uiLink(started.ui.port, started.ui.key);
    return { ...started, port, address, uiUrl };
  });
}

const serviceOptions = (folder: string) => ({
  name: 'temporal',
  title: 'The Temporal server',
  cwd: folder,
  environment: { HOME: folder, TEMPORAL_CONFIG_FILE: join(folder, 'none.toml') },
});

function startOpen({ context, program, folder, user, port }: StartOptions): Promise<Service> {
  const args = serverArguments(folder, port, ['--headless']);
  return startService(context, { ...serviceOptions(folder), command: program, args, user });
}

async function startGated(
  { context, program, folder, user, port, formerUi }: StartOptions,
  wrap: (command: string[]) => string[],
): Promise<{ service: Service; ui: Ui }> {
  // Takes the ports before the server starts. That takes seconds, and another start may look for ports meanwhile.
  const door = await listenOn(port);
  const uiDoor = await (formerUi === undefined
    ? listenOnFree(context.ports === 'usual' ? usualUiPort : undefined)
    : listenOn(formerUi.port)
  ).catch((error: unknown) => {
    door.close();
    throw error;
  });
  const { port: uiPort } = uiDoor.address() as AddressInfo;
  const ui = formerUi ?? { port: uiPort, key: randomBytes(24).toString('base64url') };
  const uiArguments = ['--ui-port', String(innerPorts.ui)];
  const server = tied(context.environment, [program, ...serverArguments(folder, innerPorts.server, uiArguments)], user);
  const gate = [process.execPath, join(import.meta.dirname, 'gate', 'program.ts'), ...server];
  const [command = '', ...args] = wrap(tied(context.environment, gate));
  const connections = openSync('/proc/self/net/tcp', 'r');
  let service: Service;
  try {
    const options = serviceOptions(folder);
    const { NODE_COMPILE_CACHE: compiled } = context.environment;
    service = await startService(context, {
      ...options,
      // The gate is a Node program too. With Node's compile cache the server starts a tenth of a second earlier.
      environment: { ...options.environment, ...(compiled && { NODE_COMPILE_CACHE: compiled }) },
      command,
      args,
      user: undefined, // the gate runs as our user, the server as its own
      channel: { descriptors: [connections] },
    });
  } catch (error) {
    door.close();
    uiDoor.close();
    throw error;
  } finally {
    closeSync(connections);
  }
  try {
    await service.send(
      { open: 'server', user: process.getuid?.() ?? 0, upstreamPort: innerPorts.server } satisfies GateOrder,
      door,
    );
    await service.send({ open: 'ui', ...ui, upstreamPort: innerPorts.ui } satisfies GateOrder, uiDoor);
  } catch (error) {
    await service.stop();
    throw error;
  }
  return { service, ui };
}

function serverArguments(folder: string, port: number, ui: string[]): string[] {
  const databaseFile = join(folder, 'temporal.db');
  // Sets the attributes only for a new database. They exist there from the first moment, without the wait for a cache.
  // A server with an existing database ignores these arguments.
  const attributes = existsSync(databaseFile)
    ? []
    : searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`]);
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), ...ui],
    ...['--db-filename', databaseFile, '--log-format', 'json', '--log-level', 'warn'],
    ...sqlitePragmas.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...dynamicConfig.flatMap((value) => ['--dynamic-config-value', value]),
    ...attributes,
  ];
}

/**
 * Rejects if the server does not answer in time. Asks for a workflow that does not exist, so that the server must read
 * its database.
 */
export async function probeTemporal(address: string, timeoutMs = 10_000): Promise<void> {
  const { Connection, isGrpcServiceError } = await import('@temporalio/client');
  const connection = await Connection.connect({ address, connectTimeout: timeoutMs });
  try {
    const execution = { workflowId: 'atrium-probe' };
    await connection.withDeadline(Date.now() + timeoutMs, () =>
      connection.workflowService.describeWorkflowExecution({ namespace: 'default', execution }),
    );
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== grpcNotFound) throw error;
  } finally {
    await connection.close();
  }
}

/** The server listens before it makes its default namespace. Fails until that namespace exists. */
async function assertAnswers(address: string): Promise<void> {
  const { Connection } = await import('@temporalio/client');
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    await connection.workflowService.describeNamespace({ namespace: 'default' });
  } finally {
    await connection.close();
  }
}
