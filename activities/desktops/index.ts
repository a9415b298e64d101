import { DomainError } from '../../base/errors.ts';
import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import { Desktop } from '../../integrations/desktops/desktop.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { isOffComputer } from '../../models/computers/sessionOn.ts';
import { type DesktopSession, findDesktop } from '../../models/desktops/session.ts';
import { endDesktop } from '../../models/desktops/sessions.ts';
import { type DesktopStep, failDesktop, nextDesktopStep, noteStarted } from '../../models/desktops/steps.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { CommonDeps } from '../deps.ts';
import { failuresOf } from '../failures.ts';
import { keepAlive } from '../keepAlive.ts';
import { createRecordingActivities } from './recordings.ts';
import { createDesktopSweeps, desktopSweeps } from './sweeps.ts';

export interface DesktopDeps extends CommonDeps {
  liveComputers: LiveComputers;
  storage: ObjectStore;
  identity: Pick<Identity, 'members' | 'keys'>;
}

/** Errors that another attempt cannot overcome. */
const final = ['DESKTOPS_UNAVAILABLE', 'X_SERVER_ENDED', 'COMPUTER_NOT_RUNNING', 'NOT_FOUND', 'PROCESS_ID_TAKEN'];

interface Which {
  sessionId: string;
}

/** The steps of a desktop session's workflow. */
function createDesktopActivities(deps: DesktopDeps) {
  const { database, liveComputers, logger } = deps;
  const failureOf = failuresOf(logger, final);

  async function xServerOf(session: DesktopSession): Promise<Desktop> {
    const client = await liveComputers.running({ spaceId: session.spaceId, computerId: session.computerId });
    return new Desktop(client, session);
  }

  /**
   * Records that the X server of a session has ended by itself. If its computer cannot be asked, the next look asks
   * again.
   */
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
        // If a caller ended the session in the meantime, there was no X server to kill yet.
        if (!(await noteStarted(database, sessionId))) await server.kill();
      } catch (error) {
        throw failureOf(error, 'A desktop session could not be started.', { sessionId });
      }
    },

    async stopDesktop({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findDesktop(database, sessionId);
      if (session?.status !== 'ending') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        // If the computer has stopped or restarted since, the X server is gone.
        if (!isOffComputer(session)) await (await xServerOf(session)).kill();
      } catch (error) {
        throw failureOf(error, 'A desktop session could not be ended.', { sessionId });
      }
      await endDesktop(database, sessionId, session.endCode ?? 'DESKTOP_DELETED');
    },

    /** Ends a session that could not be started. */
    failDesktop: ({ sessionId, code }: Which & { code: string }): Promise<void> =>
      failDesktop(database, sessionId, code),

    ...createRecordingActivities(deps),
    ...createDesktopSweeps(deps),
  };
}

export const desktops = { create: createDesktopActivities, sweeps: desktopSweeps };
