import { DomainError } from '../../base/errors.ts';
import { Browser } from '../../integrations/browsers/browser.ts';
import { DownloadsHome } from '../../integrations/browsers/home/downloadsHome.ts';
import { isDisplayAlive } from '../../integrations/desktops/desktop.ts';
import type { Destination } from '../../integrations/egress/hostPattern.ts';
import { noteDownloadFault } from '../../models/browsers/downloads.ts';
import { browserSpec, downloadsFolder } from '../../models/browsers/folders.ts';
import { endBrowser } from '../../models/browsers/saves.ts';
import { type BrowserSession, findBrowser, isOffComputer } from '../../models/browsers/session.ts';
import {
  type BrowserStep,
  failBrowser,
  nextBrowserStep,
  noteClosed,
  noteDeath,
  noteStarted,
} from '../../models/browsers/steps.ts';
import { lastDecision } from '../../models/egress/lastDecision.ts';
import { keepAlive } from '../keepAlive.ts';
import { collectDownloads } from './collectDownloads.ts';
import type { BrowserDeps } from './deps.ts';
import { failureOf } from './failure.ts';
import { openProfile } from './openProfile.ts';
import { saveProfile } from './saveProfile.ts';
import { createBrowserSweeps } from './sweeps.ts';

interface Which {
  sessionId: string;
}

const nothing = { hasDownloads: false };

/** Why something on a computer was not kept. */
function reasonOf(code: string): string {
  return code === 'NOT_FOUND' ? 'COMPUTER_DELETED' : code;
}

/** What the workflow of a browser session is made of. */
export function createBrowserActivities(deps: BrowserDeps) {
  const { database, liveComputers, logger } = deps;

  /**
   * A session whose Chromium has ended by itself has ended. What cannot be asked now is asked at the next look. Says
   * whether there are downloads that the drive may take.
   */
  async function lookInside(sessionId: string): Promise<{ hasDownloads: boolean }> {
    const session = await findBrowser(database, sessionId);
    if (session?.status !== 'running' || session.computerStatus !== 'running') return nothing;
    if (isOffComputer(session)) return nothing;
    try {
      const client = await liveComputers.running(session);
      if (await new Browser(client, browserSpec(session)).isAlive()) {
        const { files } = await new DownloadsHome(client, downloadsFolder(session)).finished();
        // What the drive did not take is tried again at the end.
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
        const urlError = await showFirst(browser, session);
        // Whoever has called it off meanwhile found nothing to end.
        if (!(await noteStarted(database, sessionId, urlError))) await browser.close(heartbeat.cancelled);
      } catch (error) {
        throw failureOf(error, { logger, sessionId }, 'A browser session could not be started.');
      }
    },

    async closeBrowser({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findBrowser(database, sessionId);
      if (session?.status !== 'ending') return;
      heartbeat.cancelled.throwIfAborted();
      try {
        // With its computer, all of it has ended.
        if (!isOffComputer(session)) {
          const client = await liveComputers.running(session);
          await new Browser(client, browserSpec(session)).close(heartbeat.cancelled);
        }
        await noteClosed(database, session);
      } catch (error) {
        throw failureOf(error, { logger, sessionId }, 'A browser session could not be ended.');
      }
    },

    async collectDownloads({ sessionId }: Which): Promise<void> {
      using heartbeat = keepAlive();
      const session = await findBrowser(database, sessionId);
      if (session === undefined || !['running', 'saving'].includes(session.status)) return;
      try {
        await collectDownloads(deps, session, heartbeat.cancelled);
      } catch (error) {
        throw failureOf(
          error,
          { logger, sessionId, needsFilesOnly: true },
          'The downloads of a browser session could not be collected.',
        );
      }
    },

    /** They are left on the computer. */
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
        throw failureOf(
          error,
          { logger, sessionId, needsFilesOnly: true },
          'The profile of a browser session could not be saved.',
        );
      }
    },

    /** For one that could not be started. */
    failBrowser: ({ sessionId, code }: Which & { code: string }): Promise<void> =>
      failBrowser(database, sessionId, code),

    /** For one whose profile could not be saved: the computer has it still, and the store what was saved before. */
    async giveUpSave({ sessionId, code }: Which & { code: string }): Promise<void> {
      const session = await findBrowser(database, sessionId);
      if (session?.status === 'saving') await endBrowser(database, session, reasonOf(code));
    },

    ...createBrowserSweeps(deps),
  };

  /** A page that does not come, or that is refused, ends nothing: answers why. */
  async function showFirst(browser: Browser, { id, url }: BrowserSession): Promise<DomainError | undefined> {
    if (url === null) return undefined;
    try {
      const [first] = await browser.tabs();
      if (first === undefined) await browser.openTab(url);
      else await browser.navigate(first.id, { url });
      return undefined;
    } catch (error) {
      if (!(error instanceof DomainError) || error.code === 'BROWSER_ENDED') throw error;
      logger.info({ code: error.code, sessionId: id }, 'The first page of a browser session did not come.');
      return error;
    }
  }
}
