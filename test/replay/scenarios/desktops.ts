import type { TestComputer } from '../../builders/computer.ts';
import { recordingsOf } from '../../builders/recording.ts';
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
      await waitFor('the session to end', async () => {
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
  {
    name: 'desktopRecording/stopped',
    ...ofRecording(async (recordings) => {
      const { id } = await recordings.start();
      await recordings.stop(id);
    }),
  },
  {
    name: 'desktopRecording/discarded',
    ...ofRecording(async (recordings, computer) => {
      const { id } = await recordings.start();
      await computer.expect(204, 'DELETE', `${recordings.path}/${id}`);
    }),
  },
  {
    name: 'desktopRecording/limitReached',
    ...ofRecording(async (recordings) => {
      const { id } = await recordings.start({ maxSeconds: 1 });
      await recordings.until(id, 'saved');
    }),
  },
  {
    name: 'desktopRecording/computerStopped',
    ...ofRecording(async (recordings, computer) => {
      const { id } = await recordings.start();
      await computer.expect(200, 'POST', '/stop');
      await recordings.until(id, 'saved');
    }),
  },
  {
    name: 'desktopRecording/folderGone',
    ...ofRecording(async (recordings, computer) => {
      const { user } = computer;
      const drive = `/api/spaces/${user.spaceId}/drive`;
      const folder = await user.fetch(`${drive}/folders`, { method: 'POST', body: { path: '/gone' } });
      const { id: parentId } = (await folder.json()) as { id: string };
      const { id } = await recordings.start({ parentId });
      await user.fetch(`${drive}/items/${parentId}`, { method: 'DELETE' });
      await recordings.stop(id);
    }),
  },
  {
    name: 'desktopRecording/unavailable',
    ...ofRecording(
      async (recordings, computer) => void (await computer.expect(422, 'POST', recordings.path, {})),
      // Links all programs except those of ffmpeg.
      'mkdir bin; for p in /usr/bin/*; do case $p in */ff*) ;; *) ln -s $p bin/ ;; esac; done',
    ),
  },
];

/**
 * Runs a scenario on the recording of a session. `without` is a command that fills `bin` with the programs that the
 * computer finds.
 */
function ofRecording(
  walk: (recordings: ReturnType<typeof recordingsOf>, computer: TestComputer) => Promise<unknown>,
  without?: string,
): Pick<Scenario, 'environment' | 'run'> {
  return onHost(
    async (computer) => {
      if (without !== undefined) {
        await computer.exec(without);
        await computer.expect(200, 'PATCH', '', { env: { PATH: '/home/user/bin' } });
        await computer.expect(200, 'POST', '/stop');
      }
      const { id } = await start(computer);
      await walk(recordingsOf(computer, id), computer);
    },
    async (pool) => {
      const [rows] = await pool.query('SELECT id FROM desktop_recordings WHERE settled_at IS NOT NULL');
      return (rows as { id: string }[])[0]?.id;
    },
    'desktopRecording',
  );
}

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
    'desktop',
  );
}
