import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../../../models/database/database.ts';
import type { TestComputer } from '../../builders/computer.ts';
import { environmentsOf } from '../../builders/environments.ts';
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
];

function room() {
  return { ATRIUM_COMPUTERS_IMAGE_MIB: '6144' };
}

async function build({ user }: TestComputer, steps: object[]): Promise<void> {
  const environments = environmentsOf(user);
  const { id } = await environments.make({ name: 'tools', steps });
  await environments.built(id);
}

async function ended(pool: Database['pool']): Promise<string | undefined> {
  const sql = "SELECT id FROM operations WHERE kind = 'buildEnvironment' AND status <> 'running'";
  return (await pool.query<RowDataPacket[]>(sql))[0][0]?.id as string | undefined;
}
