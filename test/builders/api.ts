import type { Express } from 'express';
import request from 'supertest';
import { createApp } from '../../api/frame/app.ts';
import type { ApiDeps } from '../../api/frame/deps.ts';
import type { Environment } from '../../config/index.ts';
import { EgressGuard } from '../../integrations/egress/guard.ts';
import { createCatalogue } from '../../integrations/llm/catalogue.ts';
import { createPayments } from '../../integrations/payments/index.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { createDevelopmentPayments } from '../../models/billing/developmentPayments.ts';
import { createEgressRules } from '../../models/egress/egressRules.ts';
import { createIdentity, type Identity, openEnvelope } from '../../models/identity/index.ts';
import { createMcpServers } from '../../models/mcp/mcpServers.ts';
import { createPushStore } from '../../models/push/index.ts';
import { createSecretStore } from '../../models/secrets/index.ts';
import { TurnFeed } from '../../models/turnLog/feed.ts';
import { TurnLog } from '../../models/turnLog/turnLog.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/client.ts';
import { connectTemporal } from '../../temporal/connection.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

/** The whole API in this process, over a database of the test's own. */
export interface TestApi {
  app: Express;
  /** What it is made of, for a test that starts a server of it. */
  deps: ApiDeps;
  identity: Identity;
  environment: TestEnvironment;
  /** A request as the bearer of a token or key; without one, as nobody. */
  as(credential?: string): Client;
  close(): Promise<void>;
}

export type Client = ReturnType<typeof clientOf>;

export async function buildApi(overrides: Environment = {}, deps: Partial<ApiDeps> = {}): Promise<TestApi> {
  const environment = await createTestEnvironment(overrides);
  const envelope = await openEnvelope(environment.database, environment.config);
  const identity = createIdentity(environment.database, envelope, environment.config);
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  const temporal = await connectTemporal(config, logger);
  const feed = new TurnFeed({ database, logger, remoteWriters: true });
  const turnLog = new TurnLog({ database, onCommit: feed.publish });
  feed.attach(turnLog);
  const storage = new ObjectStore(config.storage);
  const all: ApiDeps = {
    config,
    database,
    logger,
    identity,
    secrets: createSecretStore(database, envelope),
    push: createPushStore(database, envelope),
    catalogue: createCatalogue(config.llm),
    storage,
    egressGuard: new EgressGuard({ allowInternal: config.egress.allowInternal }),
    egressRules: createEgressRules(database),
    mcpServers: createMcpServers(database, envelope),
    launcher: createLauncher({ client: temporal.client, config, sharesWorkersConnection: false }),
    payments: createPayments(config, createDevelopmentPayments(database)),
    turnLog,
    feed,
    checks: [],
    draining: new AbortController().signal,
    closing: new AbortController().signal,
    ...deps,
  };
  const app = createApp(all);
  async function close() {
    feed.close();
    await turnLog.close();
    storage.close();
    await temporal.close();
    await environment.close();
  }
  return { app, deps: all, identity, environment, as: (credential) => clientOf(app, credential), close };
}

function clientOf(app: Express, credential: string | undefined) {
  const send = (method: 'get' | 'post' | 'patch' | 'put' | 'delete', path: string) => {
    const test = request(app)[method](path);
    return credential === undefined ? test : test.set('authorization', `Bearer ${credential}`);
  };
  return {
    get: (path: string) => send('get', path),
    post: (path: string, body?: object) => (body === undefined ? send('post', path) : send('post', path).send(body)),
    put: (path: string, body: object) => send('put', path).send(body),
    patch: (path: string, body: object) => send('patch', path).send(body),
    delete: (path: string) => send('delete', path),
  };
}
