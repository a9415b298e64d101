import { idsFrom } from '../../base/ids.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Computer, findComputer, getComputer } from './computer.ts';
import { type Computers, insertComputer } from './computers.ts';
import { roomFor } from './quotas.ts';
import { getSnapshot, homeOf } from './snapshots.ts';

/**
 * Makes several computers with the home of a snapshot, all or none. They have the settings and variables of the
 * snapshot's computer while that exists. A known id returns the same computers. Throws 404, 409 `TOO_MANY_COMPUTERS`,
 * `TOO_MUCH_DISK` or `SNAPSHOT_NOT_MADE`.
 */
export async function makeFromSnapshot(
  deps: { database: Database; config: Pick<Config, 'computers'>; computers: Computers },
  request: {
    spaceId: string;
    snapshotId: string;
    id: string;
    count: number;
    name?: string | undefined;
    actor: Actor & { userId: string };
  },
): Promise<Computer[]> {
  const { database, config, computers } = deps;
  const { spaceId, snapshotId, id, count, actor } = request;
  const ids = idsFrom(id, count);
  const snapshot = await getSnapshot(database, { spaceId, snapshotId });
  const found = await findComputer(database, snapshot.computerId);
  const from = found?.deletedAt === null ? found : undefined;
  const sealed = new Map<string, Buffer | null>();
  for (const copyId of ids) sealed.set(copyId, from === undefined ? null : await computers.sealEnvFor(copyId, from));
  const name = request.name ?? from?.name ?? snapshot.name;
  await transaction(database, async (tx) => {
    if ((await roomFor(tx, { spaceId, id: ids[0] ?? '', count }, from ?? {}, config)) === 'known') return;
    const home = await homeOf(tx, spaceId, snapshotId);
    for (const [index, copyId] of ids.entries()) {
      const row = { ...settingsOf(from), ...home, name: numbered(name, index, count), sealedEnv: sealed.get(copyId) };
      await insertComputer(tx, { id: copyId, spaceId, createdBy: actor.userId, row });
      await appendAudit(tx, spaceId, actor, 'computer.made', copyId);
    }
  });
  return Promise.all(ids.map((copyId) => getComputer(database, spaceId, copyId)));
}

/** The settings that a copy of a computer shares with it. */
export function settingsOf(from: Computer | undefined): Record<string, unknown> {
  if (from === undefined) return {};
  const { driver, labels, cpuMilli, memoryMiB, diskMiB, idleMinutes, envNames, hasDrive } = from;
  return { driver, labels, cpuMilli, memoryMiB, diskMiB, idleMinutes, envNames, hasDrive, forkedFrom: from.id };
}

const mostLetters = 195;

function numbered(name: string, index: number, count: number): string {
  return count === 1 ? name : `${name.slice(0, mostLetters)} ${index + 1}`;
}
