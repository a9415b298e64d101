import { DomainError } from '../../../base/errors.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { makeFromSnapshot } from '../../../models/computers/copies.ts';
import { askToFork } from '../../../models/computers/forks.ts';
import { askToRestore } from '../../../models/computers/restoring.ts';
import { getSnapshot, listSnapshots } from '../../../models/computers/snapshots.ts';
import { askForSnapshot } from '../../../models/computers/snapshotting.ts';
import type { Operation } from '../../../models/operations/operation.ts';
import { actorOfTurn, idOfCall } from '../calls.ts';
import { resultOf } from '../operations.ts';
import { objectSchema, type ServerTool, serverTool } from '../tool.ts';
import { type ComputerInput, type ComputerToolDeps, computerOfCall, computerProperty } from './place.ts';

const common = {
  access: 'act',
  role: 'editor',
  scope: 'computers:write',
  timeoutMs: 15 * 60_000,
  // What a repeated call makes has the call's id.
  afterCrash: 'again',
} as const;
const mostCopies = 20;
const listed = 20;

const nameProperty = { type: 'string', minLength: 1, maxLength: 100, pattern: '\\S' };

/** Tools that keep, restore and copy the homes of computers. */
export function computerSnapshotTools(deps: ComputerToolDeps): ServerTool[] {
  const { database } = deps;

  async function done(operation: Operation | undefined, signal: AbortSignal): Promise<void> {
    if (operation !== undefined) await resultOf(deps, operation, signal);
  }

  async function take(turn: Turn, call: { toolCallId: string; target: string; name?: string }, signal: AbortSignal) {
    const { spaceId } = turn;
    const id = idOfCall('computerSnapshot', call.toolCallId);
    const request = { spaceId, computerId: call.target, id, name: call.name, actor: actorOfTurn(turn) };
    await done(await askForSnapshot(deps, request), signal);
    return getSnapshot(database, { spaceId, snapshotId: id });
  }

  /** For a model that does not know the id of a snapshot. */
  async function known(spaceId: string): Promise<string> {
    const { data } = await listSnapshots(database, { spaceId }, { limit: listed });
    const kept = data.filter(({ saveId }) => saveId !== null);
    return kept.map(({ id, name, computerId }) => `${id} "${name}" of ${computerId}`).join('; ') || 'none';
  }

  return [
    serverTool<ComputerInput & { name?: string }>({
      ...common,
      name: 'computer_snapshot',
      description:
        'Keeps the home of a computer as it is now, for computer_restore. Use it before risky changes. Running programs go on; memory is not kept.',
      inputSchema: objectSchema({ name: nameProperty, computerId: computerProperty }),
      targetOf: computerOfCall(deps),
      async run({ name }, { turn, toolCallId, target, signal }) {
        const snapshot = await take(turn, { toolCallId, target, name }, signal);
        return { snapshotId: snapshot.id, name: snapshot.name, computerId: target };
      },
    }),

    serverTool<ComputerInput & { snapshotId: string }>({
      ...common,
      name: 'computer_restore',
      description:
        'Replaces the home of a computer by a snapshot of the space. What it had becomes another snapshot. Running programs are ended, and the computer starts again. The user must approve.',
      isDangerous: true,
      inputSchema: objectSchema(
        {
          snapshotId: { type: 'string', minLength: 1, maxLength: 80, description: 'As computer_snapshot returned it.' },
          computerId: computerProperty,
        },
        ['snapshotId'],
      ),
      targetOf: computerOfCall(deps),
      async run({ snapshotId }, { turn, toolCallId, target, signal }) {
        const { spaceId } = turn;
        const { name } = await getSnapshot(database, { spaceId, snapshotId }).catch(async (error: unknown) => {
          if (!(error instanceof DomainError)) throw error;
          const detail = `There is no such snapshot. The newest snapshots of the space: ${await known(spaceId)}.`;
          throw new DomainError('notFound', error.code, detail);
        });
        const operationId = idOfCall('operation', toolCallId);
        const request = { spaceId, computerId: target, snapshotId, actor: actorOfTurn(turn), operationId };
        await done((await askToRestore(deps, request)).operation, signal);
        return { computerId: target, restored: name };
      },
    }),

    serverTool<ComputerInput & { count: number; name?: string }>({
      ...common,
      name: 'computer_fork',
      description:
        'Makes computers with a copy of the home of a computer, for example to try several ways at once. They are stopped until they are used by their computerId.',
      inputSchema: objectSchema({
        count: { type: 'integer', minimum: 1, maximum: mostCopies, default: 1 },
        name: nameProperty,
        computerId: computerProperty,
      }),
      targetOf: computerOfCall(deps),
      async run({ count, name }, { turn, toolCallId, target, signal }) {
        const { spaceId } = turn;
        const of = { spaceId, id: idOfCall('computer', toolCallId), name, actor: actorOfTurn(turn) };
        if (count === 1) {
          await done((await askToFork(deps, { ...of, computerId: target })).operation, signal);
          return { computers: [shown(await getComputer(database, spaceId, of.id))] };
        }
        const { id: snapshotId } = await take(turn, { toolCallId, target, name }, signal);
        const made = await makeFromSnapshot(deps, { ...of, snapshotId, count });
        return { computers: made.map(shown), snapshotId };
      },
    }),
  ];
}

function shown({ id, name }: { id: string; name: string }) {
  return { computerId: id, name };
}
