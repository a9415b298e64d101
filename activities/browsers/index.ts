import { DomainError } from '../../base/errors.ts';
import { Browser } from '../../integrations/browsers/browser.ts';
import { DownloadsHome } from '../../integrations/browsers/home/downloadsHome.ts';
import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import { isDisplayAlive } from '../../integrations/desktops/desktop.ts';
import type { Destination } from '../../integrations/egress/hostPattern.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { noteDownloadFault } from '../../models/browsers/downloads.ts';
import { browserSpec, downloadsFolder } from '../../models/browsers/folders.ts';
import { endBrowser } from '../../models/browsers/saves.ts';
import type { SealedProfiles } from '../../models/browsers/sealedProfiles.ts';
import { type BrowserSession, findBrowser } from '../../models/browsers/session.ts';
import {
  type BrowserStep,
  failBrowser,
  nextBrowserStep,
  noteClosed,
  noteDeath,
  noteStarted,
} from '../../models/browsers/steps.ts';
import { isOffComputer } from '../../models/computers/sessionOn.ts';
import { lastDecision } from '../../models/egress/lastDecision.ts';
import type { CommonDeps } from '../deps.ts';
import { failuresOf } from '../failures.ts';
import { keepAlive } from '../keepAlive.ts';
import { collectDownloads } from './collectDownloads.ts';
import { openProfile, saveProfile } from './profiles.ts';
import { browserSweeps, createBrowserSweeps } from './sweeps.ts';

export interface BrowserDeps extends CommonDeps {
  liveComputers: LiveComputers;
  storage: ObjectStore;
  sealedProfiles: SealedProfiles;
}

/** Errors that another attempt cannot overcome. */
const final = [
  'BROWSERS_UNAVAILABLE',
  'BROWSER_ENDED',
  'NOT_FOUND',
  'PROCESS_ID_TAKEN',
  'PROFILE_BROKEN',
  'PROFILE_IN_USE',
  'PROFILE_NOT_OPENED',
  'PROFILE_NOT_PACKED',
  'PROFILE_OVERTAKEN',
  'PROFILE_TOO_LARGE',
  'PROFILE_UNUSABLE',
  'QUOTA_EXCEEDED',
  'DISK_FULL',
];

interface Which {
  sessionId: string;
}

const nothing = { hasDownloads: false };

/** The code to store for files of a computer that were not kept. */
function reasonOf(code: string): string {
  return code === 'NOT_FOUND' ? 'COMPUTER_DELETED' : code;
}

/** The steps of a browser session's workflow. */
function createBrowserActivities(deps: BrowserDeps) {
  const { database, liveComputers, logger } = deps;
  const failureOf = failuresOf(logger, [...final, 'COMPUTER_NOT_RUNNING']);
  /**
   * For steps that need only the computer's files: these are available again once the computer has started or stopped.
   */
  const failureOfFiles = failuresOf(logger, final);

  /**
   * Records that the Chromium of a session has ended by itself. If the computer cannot be asked now, the next look asks
   * again. Returns whether there are downloads for the drive.
   */
  async function lookInside(sessionId: string): Promise<{ hasDownloads: boolean }> {
    const session = await findBrowser(database, sessionId);
    if (session?.status !== 'running' || session.computerStatus !== 'running') return nothing;
    if (isOffComputer(session)) return nothing;
    try {
      const client = await liveComputers.running(session);
      if (await new Browser(client, browserSpec(session)).isAlive()) {
        const { files } = await new DownloadsHome(client, downloadsFolder(session)).finished();
        // Downloads that the drive has refused are tried again at the session's end.
        return { hasDownloads: files.length > 0 && session.downloadCode === null };
      }
      await noteDeath(database, sessionId, { hasDisplay: await isDisplayAlive(client, session) });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
    }
    return nothing;
  }

  return {
    async lookAtBrowser({ sessionId }: Which): Promise<BrowserStep> {
      const { hasDownloads } = await lookInside(sessionId);
      const step = await nextBrowserStep(database, sessionId);
      return hasDownloads && step.do === 'watch' ? { do: 'collect' } : step;
    },

    async startBrowser({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findBrowser(database, sessionId);
      if (session?.status !== 'starting' || isOffComputer(session)) return;
      try {
        const client = await liveComputers.running(session);
        await openProfile(deps, session, client, heartbeat.cancelled);
        const decisionOn = (to: Destination) => lastDecision(database, session.spaceId, to);
        const browser = new Browser(client, browserSpec(session), { decisionOn });
        await browser.start(heartbeat.cancelled);
        // Another worker may have started it meanwhile, and its page may be another one by now.
        const now = await findBrowser(database, sessionId);
        const urlError = now?.status === 'starting' ? await showFirst(browser, now) : undefined;
        // If a caller ended the session in the meantime, there was no Chromium to close yet.
        if (!(await noteStarted(database, sessionId, urlError))) await browser.close(heartbeat.cancelled);
      } catch (error) {
        throw failureOf(error, 'A browser session could not be started.', { sessionId });
      }
    },

    async closeBrowser({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findBrowser(database, sessionId);
      if (session?.status !== 'ending') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        // If the computer has stopped or restarted since, Chromium is gone.
        if (!isOffComputer(session)) {
          const client = await liveComputers.running(session);
          await new Browser(client, browserSpec(session)).close(heartbeat.cancelled);
        }
        await noteClosed(database, session);
      } catch (error) {
        throw failureOf(error, 'A browser session could not be ended.', { sessionId });
      }
    },

    async collectDownloads({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findBrowser(database, sessionId);
      if (session === undefined || !['running', 'saving'].includes(session.status)) return;
      try {
        await collectDownloads(deps, session, heartbeat.cancelled);
      } catch (error) {
        throw failureOfFiles(error, 'The downloads of a browser session could not be collected.', { sessionId });
      }
    },

    /** The downloads stay on the computer. */
    async giveUpDownloads({ sessionId, code }: Which & { code: string }): Promise<void> {
      const session = await findBrowser(database, sessionId);
      if (session !== undefined) await noteDownloadFault(database, session, reasonOf(code));
    },

    async saveBrowser({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findBrowser(database, sessionId);
      if (session?.status !== 'saving') return;
      try {
        await saveProfile(deps, session, heartbeat.cancelled);
      } catch (error) {
        throw failureOfFiles(error, 'The profile of a browser session could not be saved.', { sessionId });
      }
    },

    /** Ends a session that could not be started. */
    failBrowser: ({ sessionId, code }: Which & { code: string }): Promise<void> =>
      failBrowser(database, sessionId, code),

    /**
     * Ends a session whose profile could not be saved. The computer keeps the profile, and the store its earlier save.
     */
    async giveUpSave({ sessionId, code }: Which & { code: string }): Promise<void> {
      const session = await findBrowser(database, sessionId);
      if (session?.status === 'saving') await endBrowser(database, session, reasonOf(code));
    },

    ...createBrowserSweeps(deps),
  };

  /** Opens the session's first page. A page that does not open is no failure of the session: returns why. */
  async function showFirst(browser: Browser, { id, url }: BrowserSession): Promise<DomainError | undefined> {
    if (url === null) return undefined;
    try {
      const [first] = await browser.tabs();
      if (first === undefined) await browser.openTab(url);
      else await browser.navigate(first.id, { url });
      return undefined;
    } catch (error) {
      if (!(error instanceof DomainError) || error.code === 'BROWSER_ENDED') throw error;
      logger.info({ code: error.code, sessionId: id }, 'The first page of a browser session did not open.');
      return error;
    }
  }
}

export const browsers = { create: createBrowserActivities, sweeps: browserSweeps };
