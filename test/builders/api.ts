import type { Express } from 'express';
import request from 'supertest';
import { createApp } from '../../api/frame/app.ts';
import type { ApiDeps } from '../../api/frame/deps.ts';
import { createHostOf, createLiveComputers } from '../../bin/computers/liveComputers.ts';
import { createServices } from '../../bin/support/services.ts';
import type { Environment } from '../../config/index.ts';
import { createAppManifests } from '../../integrations/apps/manifests.ts';
import { createGitTrees } from '../../integrations/git/trees/createGitTrees.ts';
import type { Identity } from '../../models/identity/index.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/launcher.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

/** The whole API in this process, with its own database. */
export interface TestApi {
  app: Express;
  /** The dependencies of the API, for a test that starts its own server. */
  deps: ApiDeps;
  identity: Identity;
  environment: TestEnvironment;
  /** Sends requests with a token or key, or without a credential. */
  as(credential?: string): Client;
  close(): Promise<void>;
}

export type Client = ReturnType<typeof clientOf>;

export async function buildApi(overrides: Environment = {}, deps: Partial<ApiDeps> = {}): Promise<TestApi> {
  const environment = await createTestEnvironment(overrides);
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  const services = await createServices({ config, logger, readers: true, remoteWriters: true, database });
  const { identity, temporal } = services;
  const launcher = createLauncher({ client: temporal.client, config, logger, sharesWorkersConnection: false });
  const tokens = identity.hostTokens;
  const hostOf = createHostOf({ database, config, tokens, host: () => undefined, mayHost: () => false });
  const liveComputers = createLiveComputers({ database, config, launcher, hostOf });
  const all: ApiDeps = {
    ...services,
    hostOf,
    launcher,
    liveComputers,
    gitTrees: createGitTrees(liveComputers, config.git),
    appManifests: createAppManifests({ ...services, liveComputers }),
    checks: [],
    draining: new AbortController().signal,
    closing: new AbortController().signal,
    ...deps,
  };
  const app = createApp(all);
  async function close() {
    await services.close();
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
