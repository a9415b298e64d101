import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHost } from '../../../integrations/computers/host/createHost.ts';
import { desktopWorkflowId } from '../../../temporal/workflowIds.ts';
import { buildComputer, type TestComputer } from '../../builders/computer.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

const sessions = '/desktop/sessions';

export const desktopScenarios: Scenario[] = [
  {
    name: 'desktop/deleted',
    ...onHost(async (computer) => {
      const { id } = await start(computer);
      await computer.expect(204, 'DELETE', `${sessions}/${id}`);
    }),
  },
  {
    name: 'desktop/xServerEnded',
    ...onHost(async (computer) => {
      const { id } = await start(computer);
      await computer.exec('pkill -9 Xtigervnc');
      await waitFor('the end', async () => {
        const { status } = await computer.expect<{ status: string }>(200, 'GET', `${sessions}/${id}`);
        return status === 'ended';
      });
    }),
  },
  {
    name: 'desktop/unavailable',
    ...onHost(async (computer) => {
      await computer.expect(200, 'PATCH', '', { env: { PATH: '/nowhere' } });
      await computer.expect(422, 'POST', sessions, { resolution: '800x600' });
    }),
  },
  {
    name: 'desktop/computerStopped',
    ...onHost(async (computer) => {
      await start(computer);
      await computer.expect(200, 'POST', '/stop');
    }),
  },
];

function start(computer: TestComputer) {
  return computer.expect<{ id: string }>(200, 'POST', sessions, { resolution: '800x600' });
}

/** Walks a path of the one session of a space's default computer, on a host of its own. */
function onHost(walk: (computer: TestComputer) => Promise<void>): Pick<Scenario, 'environment' | 'run'> {
  let dir = '';
  return {
    environment() {
      dir = mkdtempSync(join(tmpdir(), 'atrium-desktops-'));
      chmodSync(dir, 0o755);
      return Promise.resolve({ ATRIUM_COMPUTERS: 'auto', ATRIUM_COMPUTERS_DIR: dir });
    },
    async run(product, user) {
      await walk(await buildComputer(product, user));
      const { pool } = product.environment.database;
      const id = await waitFor('the end', async () => {
        const [rows] = await pool.query("SELECT id FROM desktop_sessions WHERE status = 'ended'");
        return (rows as { id: string }[])[0]?.id;
      });
      // The host is the product's until that has closed.
      const left = dir;
      process.once('beforeExit', () => void remove(left));
      return desktopWorkflowId(id);
    },
  };
}

async function remove(dir: string): Promise<void> {
  await (await createHost({ dir })).shutdown();
  rmSync(dir, { recursive: true, force: true });
}
