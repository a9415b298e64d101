import { drainHost } from '../../../models/computers/draining.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { actorWorkflowId, operationWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import type { TestProduct } from '../../builders/product.ts';
import { type FakeHost, startFakeHost } from '../../fakes/computerHost.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

const environment = { ATRIUM_COMPUTER_TRANSITION_SECONDS: '5', ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' };

export const computerScenarios: Scenario[] = [
  {
    name: 'computer/stopped',
    environment,
    run: onHost(async ({ post }) => {
      for (const verb of ['wake', 'pause', 'wake', 'recover', 'stop']) await post(verb);
    }),
  },
  {
    name: 'computer/refused',
    environment,
    run: onHost(async ({ post }, host) => {
      host.behave({ start: 'START_FAILED' });
      await post('wake');
    }),
  },
  {
    name: 'computer/timedOut',
    environment,
    run: onHost(async ({ post }, host) => {
      host.behave({ start: 'hang' });
      await post('wake');
    }),
  },
  {
    name: 'computer/interrupted',
    environment,
    run: onHost(async ({ post, status }, host) => {
      host.behave({ start: 'hang' });
      const woken = post('wake');
      await waitFor('the start', async () => host.calls((await status()).computerId).includes('start'));
      await post('stop');
      await woken;
    }),
  },
  {
    name: 'computer/deleted',
    environment,
    run: onHost(async ({ post, remove }) => {
      await post('wake');
      await remove();
    }),
  },
  {
    name: 'computer/forked',
    environment,
    run: onHost(async ({ post }) => {
      await post('wake');
      const { id } = (await post('fork')) as { id: string };
      await post('stop');
      return id;
    }),
  },
  {
    name: 'computer/continued',
    environment: { ...environment, ATRIUM_MAX_HISTORY_EVENTS: '40' },
    ofFirstRun: true,
    run: onHost(async ({ post }) => {
      for (let round = 0; round < 4; round++) for (const verb of ['wake', 'pause']) await post(verb);
      await post('stop');
    }),
  },
  {
    name: 'computer/pausedTooLong',
    // The actor looks again every six seconds.
    environment: { ...environment, ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '1' },
    run: async (product, user) => {
      const { pool } = product.environment.database;
      return onHost(async ({ post, status }) => {
        await post('wake');
        await post('pause');
        const { computerId } = await status();
        await pool.query('UPDATE computers SET status_at = status_at - INTERVAL 2 DAY WHERE id = ?', [computerId]);
        await waitFor('the stop', async () => (await status()).status === 'stopped');
      })(product, user);
    },
  },
  {
    name: 'computer/moved',
    environment,
    run: onHost(async ({ post, status }, host, product) => {
      await post('wake');
      const other = await startFakeHost(product.environment);
      try {
        await drainHost(product.environment, host.id);
        await post('wake');
        const { computerId } = await status();
        await waitFor('the computer on the other host', () => other.calls(computerId).includes('start'));
        await waitFor('the end of the move', async () => (await status()).status === 'running');
        await post('stop');
      } finally {
        await other.stop();
      }
    }),
  },
  {
    name: 'purgeDeleted/spaceWithComputers',
    environment,
    async run(product, user) {
      await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' });
      const where = { kind: 'deleteSpace', spaceId: user.spaceId };
      const { Operation } = operationModels(product.environment.database);
      const { id } = await Operation.findOne({ where, rejectOnEmpty: true });
      return operationWorkflowId('deleteSpace', id);
    },
  },
];

interface DefaultComputer {
  post(verb: string): Promise<unknown>;
  remove(): Promise<unknown>;
  status(): Promise<{ computerId: string; status: string }>;
}

/** Runs a scenario on a space's default computer and a fake host. `walk` may return the id of another computer. */
function onHost(walk: (computer: DefaultComputer, host: FakeHost, product: TestProduct) => Promise<unknown>) {
  return async (product: TestProduct, user: ChatUser): Promise<string> => {
    const host = await startFakeHost(product.environment);
    try {
      const computers = `/api/spaces/${user.spaceId}/computers`;
      const status = () => user.get<{ computerId: string; status: string }>(`${computers}/status`);
      const { computerId } = await status();
      const path = `${computers}/${computerId}`;
      const post = async (verb: string) => (await user.fetch(`${path}/${verb}`, { method: 'POST' })).json();
      const other = await walk({ post, status, remove: () => user.fetch(path, { method: 'DELETE' }) }, host, product);
      return actorWorkflowId('computer', typeof other === 'string' ? other : computerId);
    } finally {
      await host.stop();
    }
  };
}
