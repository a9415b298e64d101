import { desktopWorkflowId } from '../../../temporal/workflowIds.ts';
import type { TestComputer } from '../../builders/computer.ts';
import { waitFor } from '../../support/waitFor.ts';
import { onHost } from './onHost.ts';
import type { Scenario } from './scenario.ts';

const sessions = '/desktop/sessions';

export const desktopScenarios: Scenario[] = [
  {
    name: 'desktop/deleted',
    ...onDesktop(async (computer) => {
      const { id } = await start(computer);
      await computer.expect(204, 'DELETE', `${sessions}/${id}`);
    }),
  },
  {
    name: 'desktop/xServerEnded',
    ...onDesktop(async (computer) => {
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
    ...onDesktop(async (computer) => {
      await computer.expect(200, 'PATCH', '', { env: { PATH: '/nowhere' } });
      await computer.expect(422, 'POST', sessions, { resolution: '800x600' });
    }),
  },
  {
    name: 'desktop/computerStopped',
    ...onDesktop(async (computer) => {
      await start(computer);
      await computer.expect(200, 'POST', '/stop');
    }),
  },
];

function start(computer: TestComputer) {
  return computer.expect<{ id: string }>(200, 'POST', sessions, { resolution: '800x600' });
}

const ended = "SELECT id FROM desktop_sessions WHERE status = 'ended'";

function onDesktop(walk: (computer: TestComputer) => Promise<void>) {
  return onHost(
    walk,
    async (pool) => {
      const [rows] = await pool.query(ended);
      return (rows as { id: string }[])[0]?.id;
    },
    desktopWorkflowId,
  );
}
