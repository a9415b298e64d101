import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Client, Connection, ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Environment } from '../../config/index.ts';
import {
  contentsScheduleId,
  reconcileScheduleId,
  sweeperScheduleId,
  upkeepScheduleId,
} from '../../temporal/workflowIds.ts';
import { createTestEnvironment, type TestEnvironment } from './environment.ts';
import { type ProductProcess, startProduct } from './product.ts';
import { productSettings } from './productSettings.ts';
import { startTcpProxy, type TcpProxy } from './tcpProxy.ts';

/** The facts about a shared Atrium that a test file gets. */
export interface SharedProduct {
  environment: Environment;
  apiUrl: string;
  pid: number;
}

/** A server in the main process of the run. It outlives the test files. */
export interface RunServer {
  url: string;
  close(): Promise<void>;
}

interface Product {
  environment: TestEnvironment;
  process: ProductProcess;
  /** The provider's address for this Atrium. The fake provider behind it changes with each file. */
  proxy: TcpProxy;
  providerUrl: string;
  isLeased: boolean;
}

const healthTimeoutMs = 30_000;

/**
 * Keeps a running Atrium for each Jest worker, for test files that need no settings of their own. It is started when
 * the first file asks.
 * - `POST /products/{worker}` lends it, with the address of the file's provider in the body; `DELETE` returns it. It is
 * replaced if it has died, was not returned, or was left with unfinished work (`?broken`).
 * - `DELETE /installations/{name}` removes the schedules of a closed environment from Temporal.
 * - `POST /sweeps/{name}` runs the sweeper of an installation now.
 * - `POST /tenants` answers with the variables of the server for databases of spaces, which starts at the first call.
 */
export async function serveSharedProducts(
  temporal: { address: string },
  tenants: () => Promise<Environment>,
): Promise<RunServer> {
  const products = new Map<string, Product>();
  let connection: Promise<Connection> | undefined;

  async function client(): Promise<Client> {
    connection ??= Connection.connect(temporal);
    return new Client({ connection: await connection });
  }

  async function lend(worker: string, providerUrl: string): Promise<SharedProduct> {
    const found = products.get(worker);
    if (found !== undefined && !(await isSound(found))) await discard(worker);
    const product = products.get(worker) ?? (await begin(providerUrl));
    products.set(worker, product);
    // Connections of an earlier file must not reach this file's provider.
    product.proxy.cut();
    Object.assign(product, { providerUrl, isLeased: true });
    const { apiUrl, pid } = product.process;
    return { environment: product.environment.environment, apiUrl, pid };
  }

  async function discard(worker: string): Promise<void> {
    const product = products.get(worker);
    products.delete(worker);
    if (product === undefined) return;
    await product.process.kill('SIGKILL');
    await product.proxy.stop();
    await product.environment.close();
  }

  async function giveBack(worker: string, isBroken: boolean): Promise<void> {
    if (isBroken) return discard(worker);
    const product = products.get(worker);
    if (product !== undefined) product.isLeased = false;
  }

  /** Triggers the existing sweeper schedules. Skips one whose last run has not ended. */
  async function sweep(installation: string): Promise<void> {
    const { schedule } = await client();
    await Promise.allSettled(
      [sweeperScheduleId, upkeepScheduleId, contentsScheduleId].map((idOf) =>
        schedule.getHandle(idOf(installation)).trigger(ScheduleOverlapPolicy.SKIP),
      ),
    );
  }

  /** Schedules run forever. Those of all test files together would keep the server busy. */
  async function forget(installation: string): Promise<void> {
    const { schedule } = await client();
    for (const idOf of [sweeperScheduleId, upkeepScheduleId, contentsScheduleId, reconcileScheduleId]) {
      await schedule
        .getHandle(idOf(installation))
        .delete()
        .catch((error: unknown) => {
          if (!(error instanceof ScheduleNotFoundError)) throw error;
        });
    }
  }

  async function answer({ method, url }: IncomingMessage, body: string): Promise<unknown> {
    const { pathname, searchParams } = new URL(url ?? '/', 'http://run');
    const [, kind, name = ''] = pathname.split('/');
    if (kind === 'installations' && method === 'DELETE') return forget(name);
    if (kind === 'sweeps' && method === 'POST') return sweep(name);
    if (kind === 'tenants' && method === 'POST') return tenants();
    if (kind === 'products' && method === 'POST') return lend(name, body);
    if (kind === 'products' && method === 'DELETE') return giveBack(name, searchParams.has('broken'));
    throw new Error(`Nothing is known of ${method} ${url}.`);
  }

  const server = createServer(async (request, response) => {
    // Connections are not kept: on a busy machine the next file could use one just as this server closes it.
    response.setHeader('connection', 'close');
    try {
      response.end(JSON.stringify((await answer(request, await text(request))) ?? {}));
    } catch (error) {
      response.writeHead(500).end(String(error instanceof Error ? error.stack : error));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      // Comes first, since closing an environment sends a request to this server.
      await Promise.all([...products.keys()].map(discard));
      server.close();
      server.closeAllConnections();
      await (await connection)?.close();
    },
  };
}

async function begin(providerUrl: string): Promise<Product> {
  const product = { providerUrl, isLeased: false };
  const proxy = await startTcpProxy(() => product.providerUrl);
  const environment = await createTestEnvironment(productSettings(`${proxy.url}/v1`));
  try {
    return Object.assign(product, { proxy, environment, process: await startProduct(environment) });
  } catch (error) {
    await proxy.stop();
    await environment.close();
    throw error;
  }
}

/** Whether the next file may use the Atrium. */
async function isSound({ isLeased, process }: Product): Promise<boolean> {
  if (isLeased) return false;
  try {
    return (await fetch(`${process.apiUrl}/healthz`, { signal: AbortSignal.timeout(healthTimeoutMs) })).ok;
  } catch {
    return false;
  }
}
