import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { Desktop } from '../../integrations/desktops/desktop.ts';
import { type DesktopSession, findDesktop, isOffComputer } from '../../models/desktops/session.ts';
import { endDesktop } from '../../models/desktops/sessions.ts';
import { type DesktopStep, failDesktop, nextDesktopStep, noteStarted } from '../../models/desktops/steps.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DesktopDeps } from './deps.ts';
import { createRecordingActivities } from './recordings.ts';
import { createDesktopSweeps } from './sweeps.ts';

/** What will not be better for being tried again. */
const final = ['DESKTOPS_UNAVAILABLE', 'X_SERVER_ENDED', 'COMPUTER_NOT_RUNNING', 'NOT_FOUND', 'PROCESS_ID_TAKEN'];

interface Which {
  sessionId: string;
}

/** What the workflow of a desktop session is made of. */
export function createDesktopActivities(deps: DesktopDeps) {
  const { database, liveComputers, logger } = deps;

  async function xServerOf(session: DesktopSession): Promise<Desktop> {
    const client = await liveComputers.running({ spaceId: session.spaceId, computerId: session.computerId });
    return new Desktop(client, session);
  }

  /** A session whose X server has ended by itself has ended. What cannot be asked now is asked at the next look. */
  async function noteDeath(sessionId: string): Promise<void> {
    const session = await findDesktop(database, sessionId);
    if (session === undefined || session.status !== 'running' || session.computerStatus !== 'running') return;
    if (isOffComputer(session)) return;
    try {
      if (await (await xServerOf(session)).isAlive()) return;
    } catch (error) {
      if (error instanceof DomainError) return;
      throw error;
    }
    await failDesktop(database, sessionId, 'X_SERVER_ENDED');
  }

  return {
    async lookAtDesktop({ sessionId }: Which): Promise<DesktopStep> {
      await noteDeath(sessionId);
      return nextDesktopStep(database, sessionId);
    },

    async startDesktop({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findDesktop(database, sessionId);
      if (session?.status !== 'starting' || isOffComputer(session)) return;
      try {
        const server = await xServerOf(session);
        await server.start(heartbeat.cancelled);
        // Whoever has called it off meanwhile found nothing to end.
        if (!(await noteStarted(database, sessionId))) await server.kill();
      } catch (error) {
        throw failureOf(error, 'A desktop session could not be started.', sessionId);
      }
    },

    async stopDesktop({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findDesktop(database, sessionId);
      if (session?.status !== 'ending') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        // With its computer, all of it has ended.
        if (!isOffComputer(session)) await (await xServerOf(session)).kill();
      } catch (error) {
        throw failureOf(error, 'A desktop session could not be ended.', sessionId);
      }
      await endDesktop(database, sessionId, session.endCode ?? 'DESKTOP_DELETED');
    },

    /** For one that could not be started. */
    failDesktop: ({ sessionId, code }: Which & { code: string }): Promise<void> =>
      failDesktop(database, sessionId, code),

    ...createRecordingActivities(deps),
    ...createDesktopSweeps(deps),
  };

  /** What exactly went wrong is in the log, and not in the history. */
  function failureOf(error: unknown, message: string, sessionId: string): unknown {
    if (!(error instanceof DomainError)) return error;
    logger.warn({ err: error, sessionId }, message);
    return ApplicationFailure.create({
      type: error.code,
      message: error.code,
      nonRetryable: final.includes(error.code),
    });
  }
}
