import { readFileSync } from 'node:fs';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import type { ComputerRecord } from '../../../integrations/computers/host/records.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildHosts, type TestHost, type TestHosts } from '../../builders/hosts.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';
import { waitFor } from '../../support/waitFor.ts';

// A host that is cut off from the database, and so from everything, pauses its computers, since another host may start them.

let atrium: TestHosts;
let ways: TcpProxy[];
let host: TestHost;
let computer: TestComputer;
beforeAll(async () => {
  // The home is never saved, so the computer stays with its host.
  atrium = await buildHosts({ ATRIUM_COMPUTER_SAVE_SECONDS: '0' });
  const { ATRIUM_DATABASE_URL: database = '', ATRIUM_TEMPORAL_ADDRESS: temporal = '' } = atrium.environment.environment;
  ways = await Promise.all([database, `http://${temporal}`].map((url) => startTcpProxy(() => url)));
  const [databaseHost = '', temporalHost = ''] = ways.map(({ url }) => new URL(url).host);
  host = await atrium.addHost({
    ATRIUM_DATABASE_URL: Object.assign(new URL(database), { host: databaseHost }).href,
    ATRIUM_TEMPORAL_ADDRESS: temporalHost,
  });
  const user = await atrium.user();
  const { computerId } = await user.get<{ computerId: string }>(`/api/spaces/${user.spaceId}/computers/status`);
  computer = computerOf(user, computerId);
  await computer.exec('true');
});
afterAll(async () => {
  for (const way of ways) way.open();
  await atrium.close();
  await Promise.all(ways.map((way) => way.stop()));
});

function isPaused(): boolean {
  const { record } = computerLayout(hostLayout(host.dir), computer.id);
  return (JSON.parse(readFileSync(record, 'utf8')) as ComputerRecord).run?.pausedAt != null;
}

const status = async () => (await computer.expect<{ status: string }>(200, 'GET', '')).status;

test('They resume with the next report of the host', async () => {
  const other = await atrium.addHost();
  const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', { command: 'sleep 600' });
  // The host knows of the other one with its next heartbeat. The first may have begun before the other host was there.
  for (const beat of ['a heartbeat of the host', 'a whole heartbeat of the host']) {
    const begun = new Date();
    await waitFor(beat, async () => {
      const sql = 'SELECT 1 FROM computer_hosts WHERE id = ? AND seen_at > ?';
      const [rows] = await atrium.environment.database.pool.query(sql, [host.id, begun]);
      return (rows as object[]).length > 0;
    });
  }
  for (const way of ways) way.shut();
  await waitFor('the computer to be paused', isPaused);
  await waitFor('the host to count as lost', async () => (await status()) === 'error');
  for (const way of ways) way.open();
  await waitFor('the computer to run again', async () => !isPaused() && (await status()) === 'running');
  expect(await computer.expect(200, 'GET', `/processes/${id}`)).toMatchObject({ state: 'running' });
  expect(other.id).not.toBe(host.id);
});
