import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../config/index.ts';
import { hostLayout } from '../../integrations/computers/host/layout.ts';
import { shutDownHost } from '../support/computerPrograms.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';
import { buildChatUser, type ChatUser } from './chat.ts';
import { computerOf, type TestComputer } from './computer.ts';
import { buildIdentity } from './identity.ts';

/** A machine that runs computers: a worker process with a folder of its own. */
export interface TestHost {
  id: string;
  dir: string;
  worker: ProductProcess;
  /** Kills the worker, and starts another one on the folder. Computers go on meanwhile. */
  restart(): Promise<void>;
  /** As when the machine burns down: the worker, its computers and its disk are gone. */
  destroy(): Promise<void>;
}

export interface TestHosts {
  environment: TestEnvironment;
  api: ProductProcess;
  addHost(overrides?: Environment): Promise<TestHost>;
  /** Those that are not destroyed. */
  hosts(): readonly TestHost[];
  /** The host that has the home of a computer. */
  hostOf(computer: TestComputer): Promise<TestHost | undefined>;
  user(): Promise<ChatUser>;
  close(): Promise<void>;
}

/** An API process, and as many hosts as the test adds. Homes are saved every second, and hosts lost after six. */
export async function buildHosts(overrides: Environment = {}): Promise<TestHosts> {
  const environment = await createTestEnvironment({
    ...hurriedSweeper,
    ATRIUM_COMPUTERS: 'auto',
    ATRIUM_COMPUTERS_IMAGE_MIB: '2048',
    ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '1',
    ATRIUM_COMPUTER_SAVE_SECONDS: '1',
    ATRIUM_COMPUTERS_RUNNING_PER_SPACE: '20',
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '5',
    ...overrides,
  });
  const identity = await buildIdentity(environment);
  const api = await startProduct(environment, 'api');
  let hosts: TestHost[] = [];
  return {
    environment,
    api,
    async addHost(more = {}) {
      const dir = mkdtempSync(join(tmpdir(), 'atrium-host-'));
      // The users of the computers need to pass through this folder.
      chmodSync(dir, 0o755);
      const start = () => startProduct(environment, 'worker', { ...more, ATRIUM_COMPUTERS_DIR: dir });
      const worker = await start();
      const { hostId: id } = JSON.parse(readFileSync(hostLayout(dir).identity, 'utf8')) as { hostId: string };
      const host: TestHost = {
        id,
        dir,
        worker,
        async restart() {
          await host.worker.kill('SIGKILL');
          host.worker = await start();
        },
        async destroy() {
          hosts = hosts.filter((other) => other !== host);
          await host.worker.kill('SIGKILL');
          await endComputers(dir);
        },
      };
      hosts.push(host);
      return host;
    },
    hosts: () => hosts,
    async hostOf({ id }) {
      const sql = 'SELECT host_id AS hostId FROM computers WHERE id = ?';
      const [rows] = await environment.database.pool.query(sql, [id]);
      const [row] = rows as { hostId: string | null }[];
      return hosts.find((host) => host.id === row?.hostId);
    },
    user: () => buildChatUser({ url: api.apiUrl, identity }),
    async close() {
      await Promise.all([api.stop(), ...hosts.map(({ worker }) => worker.stop())]);
      for (const { dir } of hosts) await endComputers(dir);
      await environment.close();
    },
  };
}

export async function newComputer(user: ChatUser, settings: object = {}): Promise<TestComputer> {
  const response = await user.fetch(`/api/spaces/${user.spaceId}/computers`, { method: 'POST', body: settings });
  return computerOf(user, ((await response.json()) as { id: string }).id);
}

/** What the API says of a computer. */
export interface SeenComputer {
  status: string;
  generation: number;
  homeSavedAt: string | null;
  homeSaveError: { code: string } | null;
}

export const look = (computer: TestComputer) => computer.expect<SeenComputer>(200, 'GET', '');

/** Waits for a save that was taken after a change from now. */
export async function saved(computer: TestComputer): Promise<void> {
  const now = new Date().toISOString();
  await computer.exec('date > .changed');
  await waitFor('the home to be saved', async () => ((await look(computer)).homeSavedAt ?? '') > now);
}

async function endComputers(dir: string): Promise<void> {
  await shutDownHost(dir);
  rmSync(dir, { recursive: true, force: true });
}
