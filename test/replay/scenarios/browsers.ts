import type { Environment } from '../../../config/index.ts';
import { browsersOf, startSite } from '../../builders/browser.ts';
import type { TestComputer } from '../../builders/computer.ts';
import { waitFor } from '../../support/waitFor.ts';
import { onHost } from './onHost.ts';
import type { Scenario } from './scenario.ts';

export const browserScenarios: Scenario[] = [
  {
    name: 'browser/deleted',
    ...onBrowser(async (computer) => {
      const browsers = browsersOf(computer);
      await browsers.end(await browsers.start(await browsers.profile()));
    }),
  },
  {
    name: 'browser/downloads',
    ...onBrowser(async (computer) => {
      const browsers = browsersOf(computer);
      const session = await browsers.temporary();
      const site = await startSite(computer);
      await browsers.visit(session, `${site}/`);
      await browsers.expect(201, 'POST', `/sessions/${session.id}/tabs`, { url: `${site}/file` });
      await waitFor('the file', async () => (await browsers.get(session)).downloads.files === 1);
      await browsers.end(session);
    }),
  },
  {
    name: 'browser/chromiumEnded',
    ...onBrowser(async (computer) => {
      const browsers = browsersOf(computer);
      const session = await browsers.start(await browsers.profile());
      await computer.exec('pkill -9 chromium');
      await browsers.ended(session);
    }),
  },
  {
    name: 'browser/notStarted',
    ...onBrowser(async (computer) => {
      const browsers = browsersOf(computer);
      await computer.expect(200, 'PATCH', '', { env: { PATH: '/nowhere' } });
      await browsers.expect(422, 'POST', '/sessions');
    }),
  },
  {
    name: 'browser/computerStopped',
    ...onBrowser(async (computer) => {
      const browsers = browsersOf(computer);
      await browsers.start(await browsers.profile());
      await computer.expect(200, 'POST', '/stop');
    }),
  },
  {
    name: 'browser/notSaved',
    ...onBrowser(
      async (computer) => {
        const browsers = browsersOf(computer);
        const session = await browsers.start(await browsers.profile());
        await computer.exec(`head -c 3000000 /dev/urandom > .local/share/atrium/browsers/${session.profileId}/large`);
        await browsers.end(session);
      },
      { ATRIUM_BROWSER_PROFILE_MIB: '1' },
    ),
  },
];

const ended = "SELECT id FROM browser_sessions WHERE status = 'ended'";

function onBrowser(walk: (computer: TestComputer) => Promise<void>, more?: Environment) {
  return onHost(
    walk,
    async (pool) => {
      const [rows] = await pool.query(ended);
      return (rows as { id: string }[])[0]?.id;
    },
    'browser',
    more,
  );
}
