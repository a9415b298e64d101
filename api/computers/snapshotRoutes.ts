import { getComputer } from '../../models/computers/computer.ts';
import { makeFromSnapshot } from '../../models/computers/copies.ts';
import { detailOf } from '../../models/computers/reasons.ts';
import { askToRestore } from '../../models/computers/restoring.ts';
import { getSnapshot, listSnapshots, type Snapshot } from '../../models/computers/snapshots.ts';
import { askForSnapshot, deleteSnapshot } from '../../models/computers/snapshotting.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { doneOrLater, GoesOn, outcomeOf } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { presentComputer, presentComputers } from './routes.ts';

/** Snapshots of computers, and what is made from them. */
export function snapshotRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/computers/:computerId/snapshots', async (req, res) => {
    const where = pathOf<'listComputerSnapshots'>(req);
    await getComputer(database, where.spaceId, where.computerId);
    const { data, nextCursor } = await listSnapshots(database, where, pageOf(req));
    answer<'listComputerSnapshots'>(res, 200, { data: data.map(presentSnapshot), nextCursor });
  });

  router.post('/api/spaces/:spaceId/computers/:computerId/snapshots', async (req, res) => {
    const { spaceId, computerId } = pathOf<'createComputerSnapshot'>(req);
    const { name, memory: hasMemory = false } = bodyOf<'createComputerSnapshot'>(req) ?? {};
    await makeOnce<'createComputerSnapshot'>(deps, req, res, 'computerSnapshot', async (id) => {
      const order = { spaceId, computerId, id, name, hasMemory, actor: actorOf(req) };
      const operation = await askForSnapshot(deps, order);
      const outcome = operation && (await outcomeOf(deps, req, operation));
      if (outcome instanceof GoesOn) return outcome;
      return presentSnapshot(await getSnapshot(database, { spaceId, snapshotId: id }));
    });
  });

  router.post('/api/spaces/:spaceId/computers/:computerId/restore', async (req, res) => {
    const { spaceId, computerId } = pathOf<'restoreComputer'>(req);
    const { snapshotId } = bodyOf<'restoreComputer'>(req);
    const asked = await askToRestore(deps, { spaceId, computerId, snapshotId, actor: actorOf(req) });
    if (!(await doneOrLater(deps, req, res, asked.operation))) return;
    const computer = await getComputer(database, spaceId, computerId);
    answer<'restoreComputer'>(res, 200, await presentComputer(deps, computer));
  });

  router.get('/api/spaces/:spaceId/snapshots', async (req, res) => {
    const { spaceId } = pathOf<'listSnapshots'>(req);
    const { data, nextCursor } = await listSnapshots(database, { spaceId }, pageOf(req));
    answer<'listSnapshots'>(res, 200, { data: data.map(presentSnapshot), nextCursor });
  });

  router.get('/api/spaces/:spaceId/snapshots/:snapshotId', async (req, res) => {
    answer<'getSnapshot'>(res, 200, presentSnapshot(await getSnapshot(database, pathOf<'getSnapshot'>(req))));
  });

  router.delete('/api/spaces/:spaceId/snapshots/:snapshotId', async (req, res) => {
    await deleteSnapshot(database, { ...pathOf<'deleteSnapshot'>(req), actor: actorOf(req) });
    res.status(204).end();
  });

  router.post('/api/spaces/:spaceId/snapshots/:snapshotId/computers', async (req, res) => {
    const where = pathOf<'createComputersFromSnapshot'>(req);
    const { count, name } = bodyOf<'createComputersFromSnapshot'>(req);
    await makeOnce<'createComputersFromSnapshot'>(deps, req, res, 'computer', async (id) => {
      const made = await makeFromSnapshot(deps, { ...where, id, count, name, actor: actorOf(req) });
      return { data: await presentComputers(deps, made) };
    });
  });

  return router;
}

function presentSnapshot(snapshot: Snapshot): AnswerOf<'getSnapshot'> {
  const { id, spaceId, computerId, name, saveId, failedCode, takenAt, homeBytes, createdBy, createdAt } = snapshot;
  return {
    id,
    spaceId,
    computerId,
    name,
    status: saveId !== null ? 'kept' : failedCode === null ? 'making' : 'failed',
    error: failedCode === null ? null : { code: failedCode, detail: detailOf(failedCode) },
    takenAt: takenAt === null ? null : time(takenAt),
    sizeBytes: homeBytes === null ? null : Number(homeBytes),
    createdBy,
    createdAt: time(createdAt),
  };
}
