import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../../../models/database/database.ts';
import type { TestComputer } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
import { imageWith, smallRoot, tarOf } from '../../builders/images.ts';
import { type FakeRegistry, startFakeRegistry } from '../../fakes/registry.ts';
import { getImagePrograms } from '../../support/imagePrograms.ts';
import { waitFor } from '../../support/waitFor.ts';
import { onHost } from './onHost.ts';
import type { Scenario } from './scenario.ts';

export const environmentScenarios: Scenario[] = [
  {
    name: 'buildEnvironment/ready',
    ...onHost(
      (computer) => build(computer, [{ run: 'echo one' }, { workdir: '/srv' }]),
      ended,
      'buildEnvironment',
      room(),
    ),
  },
  {
    name: 'buildEnvironment/failed',
    ...onHost((computer) => build(computer, [{ run: 'exit 3' }]), ended, 'buildEnvironment', room()),
  },
  {
    name: 'buildEnvironment/cancelled',
    ...onHost(
      async ({ user }) => {
        const environments = environmentsOf(user);
        const { id, latest } = await environments.make({ name: 'tools', steps: [{ run: 'sleep 1000' }] });
        await waitFor('the step', async () => (await environments.look(id)).latest.steps[0]?.status === 'running');
        await user.fetch(`/api/operations/${latest.operationId}/cancel`, { method: 'POST' });
        await environments.built(id);
      },
      ended,
      'buildEnvironment',
      room(),
    ),
  },
  fromImage(),
];

/** A build that asks a registry first, of an image that this has. */
function fromImage(): Scenario {
  let registry: FakeRegistry;
  const { environment: ofHost, run } = onHost(
    async (computer) => {
      const base = registry.put('team/tools', '1', imageWith([tarOf(smallRoot())], { WorkingDir: '/srv' }));
      await build(computer, [{ run: 'echo one' }], base);
    },
    ended,
    'buildEnvironment',
    room(),
  );
  return {
    name: 'buildEnvironment/image',
    async environment() {
      await getImagePrograms();
      registry = await startFakeRegistry();
      const { host } = registry;
      const own = typeof ofHost === 'function' ? await ofHost() : ofHost;
      return { ...own, ATRIUM_IMAGE_REGISTRIES: host, ATRIUM_IMAGE_REGISTRIES_INSECURE: host };
    },
    run,
    close: async () => registry[Symbol.asyncDispose](),
  };
}

function room() {
  return { ATRIUM_COMPUTERS_IMAGE_MIB: '6144' };
}

async function build({ user }: TestComputer, steps: object[], base = 'debian'): Promise<void> {
  const environments = environmentsOf(user);
  const { id } = await environments.make({ name: 'tools', base, steps });
  await environments.built(id);
}

async function ended(pool: Database['pool']): Promise<string | undefined> {
  const sql = "SELECT id FROM operations WHERE kind = 'buildEnvironment' AND status <> 'running'";
  return (await pool.query<RowDataPacket[]>(sql))[0][0]?.id as string | undefined;
}
