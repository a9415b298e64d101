import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import {
  type DesktopRecording,
  failureDetailOf,
  findRecording,
  getRecording,
  listRecordings,
  type RecordingRef,
} from '../../models/desktops/recording.ts';
import { createRecording, discardRecording, saveAgain, stopRecording } from '../../models/desktops/recordings.ts';
import { getDesktop } from '../../models/desktops/session.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { desktopChanges, lookAtDesktop, xServerOf } from './look.ts';
import { presentRecording } from './presentRecording.ts';
import { driveAuthority, fileNameOf, recordingFolder } from './recordingTarget.ts';

const usualFolder = { path: '/Recordings' };

/** Recordings of desktop sessions. They become files of the drive. */
export function desktopRecordingRoutes(deps: RouteDeps) {
  const { config, database, launcher } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId/desktop/sessions/:sessionId/recordings';

  router.get(base, async (req, res) => {
    const ref = pathOf<'listDesktopRecordings'>(req);
    const session = await getDesktop(database, ref);
    const { data, nextCursor } = await listRecordings(database, ref.sessionId, pageOf(req));
    const shown = data.map((recording) => presentRecording(recording, session));
    answer<'listDesktopRecordings'>(res, 200, { data: shown, nextCursor });
  });

  router.post(base, async (req, res) => {
    const ref = pathOf<'createDesktopRecording'>(req);
    const { name, framesPerSecond = 10, maxSeconds = 600, ...place } = bodyOf<'createDesktopRecording'>(req);
    const { maxSeconds: most, maxBytes } = config.desktops.recording;
    if (maxSeconds > most) throw tooLong(most);
    const { apiKeyId } = driveAuthority(req);
    const fields = { framesPerSecond, maxSeconds, maxBytes, apiKeyId, name: fileNameOf(name, new Date()) };
    await makeOnce<'createDesktopRecording', { id: string }>(
      deps,
      req,
      res,
      'desktopRecording',
      async (id) => {
        const recordingRef = { ...ref, recordingId: id };
        await lookAtDesktop(deps, ref);
        const folder = (await recordingFolder(database, ref.spaceId, place)) ?? usualFolder;
        if ((await findRecording(database, id)) === undefined) await xServerOf(deps, ref);
        const isNew = await createRecording(database, recordingRef, { ...fields, folder }, actorOf(req));
        changed({ id, ...ref });
        const { errorCode } = await untilStarted(req, recordingRef);
        // The recording of an earlier request may have run, and have failed since.
        if (isNew && errorCode !== null) throw notStarted(errorCode);
        return { id };
      },
      { show: ({ id }) => shown({ ...ref, recordingId: id }) },
    );
  });

  router.get(`${base}/:recordingId`, async (req, res) => {
    answer<'getDesktopRecording'>(res, 200, await shown(pathOf<'getDesktopRecording'>(req)));
  });

  router.post(`${base}/:recordingId/stop`, async (req, res) => {
    const ref = pathOf<'stopDesktopRecording'>(req);
    const recording = await stopRecording(database, ref, actorOf(req));
    if (recording.settledAt === null) changed(recording);
    await untilOver(req, ref, ['stopping', 'saving']);
    answer<'stopDesktopRecording'>(res, 200, await shown(ref));
  });

  router.post(`${base}/:recordingId/save`, async (req, res) => {
    const ref = pathOf<'saveDesktopRecording'>(req);
    const { apiKeyId } = driveAuthority(req);
    await getRecording(database, ref);
    const folder = await recordingFolder(database, ref.spaceId, bodyOf<'saveDesktopRecording'>(req));
    const recording = await saveAgain(database, ref, folder, { ...actorOf(req), apiKeyId });
    if (recording.settledAt === null) changed(recording);
    await untilOver(req, ref, ['stopping', 'saving']);
    answer<'saveDesktopRecording'>(res, 200, await shown(ref));
  });

  router.delete(`${base}/:recordingId`, async (req, res) => {
    const ref = pathOf<'deleteDesktopRecording'>(req);
    const recording = await discardRecording(database, ref, actorOf(req));
    if (recording.settledAt === null) {
      changed(recording);
      await untilOver(req, ref, ['discarding']);
    }
    res.status(204).end();
  });

  /** Tells the recording's workflow, and the pages that show whether their desktop is recorded. */
  function changed({ id, spaceId, sessionId }: Pick<DesktopRecording, 'id' | 'spaceId' | 'sessionId'>): void {
    void launcher.startRecording({ id, spaceId });
    desktopChanges.emit(sessionId);
  }

  async function shown(ref: RecordingRef) {
    return presentRecording(await getRecording(database, ref), await getDesktop(database, ref));
  }

  function untilStarted(req: Request, ref: RecordingRef): Promise<DesktopRecording> {
    return waitForRow(
      req,
      () => getRecording(database, ref),
      ({ status }) => status !== 'starting',
    );
  }

  /** Waits while the recording has one of these statuses, but not for a paused computer, which cannot finish it. */
  async function untilOver(req: Request, ref: RecordingRef, underWay: DesktopRecording['status'][]): Promise<void> {
    await waitForRow(
      req,
      () => Promise.all([getRecording(database, ref), getDesktop(database, ref)]),
      ([{ status }, { computerStatus }]) => !underWay.includes(status) || computerStatus === 'paused',
    );
    desktopChanges.emit(ref.sessionId);
  }

  return router;
}

function notStarted(code: string): DomainError {
  const kind = code === 'RECORDING_UNAVAILABLE' ? 'unprocessable' : 'upstream';
  return new DomainError(kind, code, failureDetailOf(code));
}

function tooLong(most: number): DomainError {
  const detail = `A recording has at most ${most} seconds here.`;
  const errors = [{ pointer: '/maxSeconds', detail }];
  return new DomainError('unprocessable', 'RECORDING_TOO_LONG', detail, { errors });
}
