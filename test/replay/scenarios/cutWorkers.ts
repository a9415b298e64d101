import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../../config/index.ts';
import { actorWorkflowId, turnWorkflowId } from '../../../temporal/workflowIds.ts';
import { appsOf, manifestOf } from '../../builders/app.ts';
import { browsersOf } from '../../builders/browser.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildComputer, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { recordingsOf } from '../../builders/recording.ts';
import { gitOf, localGitServer, remoteRepository } from '../../builders/repository.ts';
import { shutDownHost } from '../../support/computerPrograms.ts';
import type { GitServer } from '../../support/gitServer.ts';
import { startProduct } from '../../support/product.ts';
import { startTcpProxy } from '../../support/tcpProxy.ts';
import { tookNewPath, workflowEnded } from '../histories.ts';
import type { Scenario } from './scenario.ts';

// The worker of a workflow has lost the database alone. So the workflow lets any worker do its row work, and goes on.

let server: GitServer | undefined;

export const cutWorkerScenarios: Scenario[] = [
  onCutHost('computer/anyWorker', async ({ computer, whileCut }) => {
    await computer.expect(200, 'POST', '/wake');
    return whileCut('computer', computer.id, () => computer.fetch('/stop', { method: 'POST' }));
  }),
  onCutHost('browser/anyWorker', async ({ computer, whileCut }) => {
    const browsers = browsersOf(computer);
    const { id } = await browsers.start(await browsers.profile());
    return whileCut('browser', id, () => browsers.fetch(`/sessions/${id}`, { method: 'DELETE' }));
  }),
  onCutHost('desktop/anyWorker', async ({ computer, whileCut }) => {
    const { id } = await desktopOf(computer);
    return whileCut('desktop', id, () => computer.fetch(`/desktop/sessions/${id}`, { method: 'DELETE' }));
  }),
  onCutHost('desktopRecording/anyWorker', async ({ computer, whileCut }) => {
    const recordings = recordingsOf(computer, (await desktopOf(computer)).id);
    const { id } = await recordings.start();
    return whileCut('desktopRecording', id, () => computer.fetch(`${recordings.path}/${id}`, { method: 'DELETE' }));
  }),
  {
    name: 'repository/anyWorker',
    async environment() {
      const local = await localGitServer();
      ({ server } = local);
      return local.environment;
    },
    run: withCutWorker(async ({ user, cut, untilHandedOver }) => {
      if (server === undefined) throw new Error('There is no git server.');
      cut();
      const { id } = (await gitOf(user).clone({ url: remoteRepository(server).url })).body;
      return untilHandedOver(actorWorkflowId('repository', id));
    }),
    close: async () => server?.[Symbol.asyncDispose](),
  },
  {
    name: 'appRun/anyWorker',
    // There is no host for computers here, so the run fails.
    run: withCutWorker(async ({ product, user, cut, untilHandedOver }) => {
      const apps = appsOf(product, user);
      const id = await apps.app(manifestOf('make'));
      cut();
      const { runId } = (await apps.run(id)).body;
      return untilHandedOver(actorWorkflowId('appRun', runId));
    }),
  },
  {
    name: 'appRun/silentDatabase',
    run: withCutWorker(async ({ product, user, silence, untilHandedOver }) => {
      const apps = appsOf(product, user);
      const id = await apps.app(manifestOf('make'));
      silence();
      const { runId } = (await apps.run(id)).body;
      return untilHandedOver(actorWorkflowId('appRun', runId));
    }),
  },
  {
    name: 'runChatTurn/anyWorker',
    run: withCutWorker(async ({ user, cut, untilHandedOver }) => {
      const { turnId } = await user.ask({ content: '/tool ask_user {"question":"?"}', modelId: 'demo', mode: 'work' });
      cut();
      await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
      return untilHandedOver(turnWorkflowId(turnId));
    }),
  },
];

function desktopOf(computer: TestComputer) {
  return computer.expect<{ id: string }>(200, 'POST', '/desktop/sessions', { resolution: '800x600' });
}

interface CutWorker {
  product: TestProduct;
  user: ChatUser;
  /** Cuts the worker off from the database. */
  cut(): void;
  /** Lets the worker wait for the database. */
  silence(): void;
  /** Waits until the workflow lets any worker do its row work. Then the worker has the database again. */
  untilHandedOver(workflowId: string): Promise<string>;
}

/** Runs a scenario with an API and one worker, whose way to the database can be cut. */
function withCutWorker(walk: (cut: CutWorker) => Promise<string>): Scenario['run'] {
  return async (product, user) => {
    const { config, environment } = product.environment;
    const { ATRIUM_DATABASE_URL: url = '' } = environment;
    const database = await startTcpProxy(() => url);
    await product.process.stop();
    product.process = await startProduct(product.environment, 'api');
    const throughProxy = Object.assign(new URL(url), { host: new URL(database.url).host }).href;
    const worker = await startProduct(product.environment, 'worker', { ATRIUM_DATABASE_URL: throughProxy });
    try {
      const workflowId = await walk({
        product,
        user,
        cut: () => database.shut(),
        silence: () => database.freeze(),
        async untilHandedOver(id) {
          await tookNewPath(config, id);
          database.open();
          database.thaw();
          return id;
        },
      });
      await workflowEnded(config, workflowId);
      return workflowId;
    } finally {
      database.open();
      await worker.stop();
      await database.stop();
    }
  };
}

interface CutHost {
  computer: TestComputer;
  /** Orders something while the host is cut off. Returns the actor's workflow. */
  whileCut(kind: string, id: string, order: () => Promise<unknown>): Promise<string>;
}

/** The same on a computer, whose host is the worker. */
function onCutHost(name: string, walk: (host: CutHost) => Promise<string>): Scenario {
  let dir: string;
  return {
    name,
    environment(): Promise<Environment> {
      dir = mkdtempSync(join(tmpdir(), 'atrium-hosted-'));
      chmodSync(dir, 0o755);
      return Promise.resolve({ ATRIUM_COMPUTERS: 'auto', ATRIUM_COMPUTERS_DIR: dir });
    },
    run: withCutWorker(async ({ product, user, cut, untilHandedOver }) =>
      walk({
        computer: await buildComputer(product, user),
        async whileCut(kind, id, order) {
          cut();
          const ordered = order();
          await untilHandedOver(actorWorkflowId(kind, id));
          await ordered;
          return actorWorkflowId(kind, id);
        },
      }),
    ),
    async close() {
      await shutDownHost(dir);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
