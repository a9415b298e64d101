import type { Config } from '../../config/index.ts';
import { appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { type Computer, getComputer } from './computer.ts';
import { beginComputerOperation } from './computerOperations.ts';
import { type Computers, insertComputer, lockComputer } from './computers.ts';
import { settingsOf } from './copies.ts';
import { refusalOfHost } from './hosts.ts';
import { roomFor } from './quotas.ts';
import { requireQuietHome } from './starting.ts';
import type { Asked } from './wishes.ts';

/**
 * Asks for a copy of a computer, under the given id. The operation copies its home. A computer that was never used has
 * no home. Throws 404, 409 `TOO_MANY_COMPUTERS` or `TOO_MUCH_DISK`, 503 `HOST_LOST`.
 */
export async function askToFork(
  deps: { database: Database; config: Pick<Config, 'computers'>; computers: Computers },
  request: { spaceId: string; computerId: string; id: string; name?: string | undefined; actor: Actor },
): Promise<Asked> {
  const { database, config, computers } = deps;
  const { spaceId, computerId, id, name, actor } = request;
  const seen = await getComputer(database, spaceId, computerId);
  const sealed = await computers.sealEnvFor(id, seen);
  const operation = await transaction(database, async (tx): Promise<Operation | undefined> => {
    if ((await roomFor(tx, { spaceId, id }, seen, config)) === 'known') return underWay(tx, id);
    const from = await lockComputer(tx, spaceId, computerId);
    requireQuietHome(from);
    const refusal = from.hostId === null ? undefined : await refusalOfHost(database, from.hostId, config);
    if (refusal !== undefined) throw refusal;
    await insertComputer(tx, {
      id,
      spaceId,
      createdBy: actor.userId,
      row: { ...copyOf(from, name), sealedEnv: sealed },
    });
    await appendAudit(tx, spaceId, actor, 'computer.forked', computerId);
    return from.hostId === null ? undefined : beginComputerOperation(tx, { id, spaceId }, 'forkComputer', actor.userId);
  });
  return { computer: await getComputer(database, spaceId, id), operation };
}

type Actor = Parameters<typeof appendAudit>[2] & { userId: string };

async function underWay(tx: Parameters<typeof appendAudit>[0], id: string): Promise<Operation | undefined> {
  const { Operation } = operationModels(tx);
  const where = { subjectId: id, kind: 'forkComputer', status: 'running' };
  return (await Operation.findOne({ where, transaction: tx })) ?? undefined;
}

function copyOf(from: Computer, name: string | undefined): Record<string, unknown> {
  return {
    name: name ?? from.name,
    ...settingsOf(from),
    hostId: from.hostId,
    base: from.base,
    image: from.image,
    environmentVersionId: from.environmentVersionId,
    wish: from.hostId === null ? null : 'fork',
    // Between two hosts, its home is the save.
    ...(from.hostId === null && { homeSaveId: from.homeSaveId, homeSavedAt: from.homeSavedAt }),
  };
}
