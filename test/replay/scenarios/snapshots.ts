import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../../../models/database/database.ts';
import type { TestComputer } from '../../builders/computer.ts';
import { waitFor } from '../../support/waitFor.ts';
import { onHost } from './onHost.ts';
import type { Scenario } from './scenario.ts';

export const snapshotScenarios: Scenario[] = [
  {
    name: 'snapshotComputer/made',
    ...onHost(
      async (computer) => {
        await computer.exec('echo one > file');
        await take(computer);
      },
      ended,
      'snapshotComputer',
    ),
  },
  {
    name: 'snapshotComputer/noRoom',
    ...onHost(
      async (computer) => {
        await computer.exec('head -c 3000000 /dev/urandom > file');
        await take(computer);
      },
      ended,
      'snapshotComputer',
      { ATRIUM_DRIVE_QUOTA_MIB: '1' },
    ),
  },
  {
    name: 'computer/restored',
    ...onHost(
      async (computer) => {
        await computer.exec('echo one > file');
        await take(computer);
        await computer.exec('echo two > file');
        const { data } = await computer.expect<{ data: { id: string }[] }>(200, 'GET', '/snapshots');
        await computer.fetch('/restore', { method: 'POST', body: { snapshotId: data[0]?.id } });
        const look = () => computer.expect<{ status: string }>(200, 'GET', '');
        await waitFor('the computer to run again', async () => (await look()).status === 'running');
        await computer.expect(200, 'POST', '/stop');
      },
      async (pool) => {
        const sql = "SELECT id FROM computers WHERE status = 'stopped' AND wish IS NULL";
        return (await pool.query<RowDataPacket[]>(sql))[0][0]?.id as string | undefined;
      },
      'computer',
    ),
  },
];

const take = (computer: TestComputer) => computer.fetch('/snapshots', { method: 'POST', body: {} });

async function ended(pool: Database['pool']): Promise<string | undefined> {
  const sql = "SELECT id FROM operations WHERE kind = 'snapshotComputer' AND status <> 'running'";
  return (await pool.query<RowDataPacket[]>(sql))[0][0]?.id as string | undefined;
}
