import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { untilAborted } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { OwnProgram } from '../computers/processes/ownProgram.ts';
import { act, mostWaitMs } from './act/act.ts';
import { CdpConnection, socketOn } from './cdp/connection.ts';
import { type BrowserVersion, type DevToolsEndpoint, dialEndpoint, readEndpoint, readVersion } from './cdp/endpoint.ts';
import { startChromium, startedBy } from './chromium.ts';
import { browserError, callFailure } from './failures.ts';
import { goTo, requireUrl } from './navigate.ts';
import { Page } from './page.ts';
import type { DecisionOn } from './pageFailures.ts';
import { pdf, screenshot, shown } from './pictures.ts';
import { readPage } from './read/readPage.ts';
import { closeTarget, listTabs, maxTabs, outcome, type Reach, tabIds, tabOf, tabsBeside } from './tabs.ts';
import type {
  ActOutcome,
  BrowserSpec,
  CallOptions,
  Navigation,
  PageAction,
  PageText,
  ReadOptions,
  ShownTab,
  Tab,
  TabOutcome,
} from './types.ts';

const callMs = 30_000;
const navigateMs = 60_000;
/** How long Chromium may take to write its cookies and storage to disk. */
const closeMs = 8_000;

/**
 * The Chromium of a session, on a running computer. Each call but `start` and `close` throws 502 `BROWSER_ENDED` when
 * Chromium has ended, and 504 `BROWSER_NOT_ANSWERING` when it does not answer in time.
 */
export class Browser {
  readonly #client: HostClient;
  readonly #spec: BrowserSpec;
  readonly #decisionOn: DecisionOn;
  readonly #program: OwnProgram;

  /** `decisionOn` looks up the egress proxy's decisions, so that a refused page can say why. */
  constructor(client: HostClient, spec: BrowserSpec, { decisionOn = noDecision }: { decisionOn?: DecisionOn } = {}) {
    this.#client = client;
    this.#spec = spec;
    this.#decisionOn = decisionOn;
    this.#program = new OwnProgram(client, spec.id);
  }

  /**
   * Starts Chromium unless it runs, and settles when it takes clients. Throws 422 `BROWSERS_UNAVAILABLE` when the
   * computer has no Chromium, 409 `PROFILE_IN_USE` when another browser uses the profile, 422 `PROFILE_UNUSABLE` when
   * the profile's folder is not writable, and 502 `BROWSER_ENDED`.
   */
  start(signal: AbortSignal): Promise<void> {
    const hasEndpoint = () => this.endpoint(signal).then(() => true, falseIfEnded);
    return startChromium(this.#client, this.#spec, { hasEndpoint, signal });
  }

  /** Whether Chromium is still running, as far as its computer knows. */
  isAlive(): Promise<boolean> {
    return this.#program.isAlive();
  }

  /**
   * Has Chromium write its cookies and storage to disk and end. Settles when no process of it runs, at once when none
   * does. Kills a Chromium that does not end by itself.
   */
  async close(signal: AbortSignal): Promise<void> {
    if (!(await this.isAlive())) return;
    const late = AbortSignal.any([signal, AbortSignal.timeout(closeMs)]);
    try {
      const [, cdp] = await this.#open(late);
      // The connection usually ends before Chromium has answered.
      await cdp.send('Browser.close', {}).catch(() => undefined);
      await this.#program.untilEnded(late);
    } catch {
      signal.throwIfAborted();
      await this.#program.kill(() => browserError('BROWSER_NOT_ENDING', 'The browser is still running.'), signal);
    }
  }

  tabs({ signal }: CallOptions = {}): Promise<Tab[]> {
    return this.#reach(callMs, signal, listTabs);
  }

  /** Throws 422 `URL_REFUSED`, 429 `TOO_MANY_TABS`, and what `navigate` throws. */
  async openTab(url: string, options: CallOptions = {}): Promise<TabOutcome> {
    const to = requireUrl(url);
    return this.#reach(navigateMs, options.signal, async (reach) => {
      if ((await tabIds(reach.cdp)).size >= maxTabs) {
        const detail = `A browser has at most ${maxTabs} tabs. Close some.`;
        throw browserError('TOO_MANY_TABS', detail, { retryAfterSeconds: 1 });
      }
      const { targetId } = await reach.cdp.send('Target.createTarget', { url: 'about:blank' });
      try {
        const page = await Page.attach(reach.cdp, targetId, options);
        return await goTo(reach, page, { url: to });
      } catch (error) {
        // The caller does not learn the tab's id, so a second attempt would leave a second tab.
        await closeTarget(reach.cdp, targetId).catch(() => undefined);
        throw error;
      }
    });
  }

  /**
   * Settles when the page can be read; it may still load images and the like. Throws 404 `TAB_NOT_FOUND`, 422
   * `URL_REFUSED`, 409 `NO_HISTORY`, 504 `NAVIGATION_TIMEOUT`, and 502 `NAVIGATION_FAILED` with Chromium’s own code,
   * such as `net::ERR_CONNECTION_RESET`, in its detail. When the egress proxy has refused the page: 422
   * `EGRESS_REFUSED`, 502 `EGRESS_UNRESOLVED` or `EGRESS_UNREACHABLE`, 429 `EGRESS_BUSY`.
   */
  navigate(tabId: string, to: Navigation, options: CallOptions = {}): Promise<TabOutcome> {
    return this.#reach(navigateMs, options.signal, async (reach) => {
      return goTo(reach, await Page.attach(reach.cdp, tabId, options), to);
    });
  }

  activateTab(tabId: string, options: CallOptions = {}): Promise<Tab> {
    return this.#reach(callMs, options.signal, async (reach) => {
      const page = await Page.attach(reach.cdp, tabId, options);
      await reach.cdp.send('Target.activateTarget', { targetId: tabId });
      return tabOf(reach, page);
    });
  }

  /** Closes a tab. An empty tab replaces the last one, because Chromium ends without any. */
  closeTab(tabId: string, options: CallOptions = {}): Promise<void> {
    return this.#reach(callMs, options.signal, async ({ cdp }) => {
      // An attached page answers the dialog that asks whether to leave.
      await Page.attach(cdp, tabId, options);
      if ((await tabIds(cdp)).size === 1) await cdp.send('Target.createTarget', { url: 'about:blank' });
      await closeTarget(cdp, tabId);
    });
  }

  /** A PNG. A picture of the full page is cut when the page is too long. */
  screenshot(tabId: string, { isFullPage = false, ...options }: CallOptions & { isFullPage?: boolean } = {}) {
    return this.#onPage(tabId, options, (page) => screenshot(page, { isFullPage }));
  }

  /** Throws 409 `PDF_TOO_LARGE`. */
  pdf(tabId: string, options: CallOptions = {}): Promise<Buffer> {
    return this.#onPage(tabId, options, pdf);
  }

  shown(tabId: string, options: CallOptions = {}): Promise<ShownTab> {
    return this.#onPage(tabId, options, shown);
  }

  /** References are valid as long as the element and its document exist. Throws 409 `PAGE_TOO_LARGE`. */
  read(tabId: string, { maxLength, ...options }: ReadOptions = {}): Promise<PageText> {
    return this.#onPage(tabId, options, async (page, reach) => {
      const { text, isCut } = await readPage(page, maxLength);
      return { tab: await tabOf(reach, page), text, isCut, dialogs: page.dialogs };
    });
  }

  /**
   * Throws 409 `ELEMENT_GONE` for a reference whose element no longer exists, `ELEMENT_NOT_VISIBLE`, `ELEMENT_COVERED`,
   * 422 `ACTION_REFUSED` when the element does not take this action, and 504 `NOT_SEEN`.
   */
  act(tabId: string, action: PageAction, options: CallOptions = {}): Promise<ActOutcome> {
    const use = async (page: Page, reach: Reach) => {
      const before = await tabIds(reach.cdp);
      await act(page, action, reach.signal);
      const [after, opened] = await Promise.all([outcome(reach, page), tabsBeside(reach, before)]);
      return { ...after, opened };
    };
    return this.#onPage(tabId, options, use, action.kind === 'wait' ? callMs + mostWaitMs : callMs);
  }

  /**
   * Opens a WebSocket to the DevTools endpoint for a script outside Atrium, with the stream below it. Wait until it is
   * open before sending. The signal ends both.
   */
  async attach(signal: AbortSignal): Promise<{ socket: WebSocket; stream: Duplex }> {
    const endpoint = await this.endpoint(signal);
    const stream = await dialEndpoint(this.#client, endpoint, signal);
    return { socket: socketOn(stream, endpoint), stream };
  }

  endpoint(signal: AbortSignal): Promise<DevToolsEndpoint> {
    return readEndpoint(this.#client, this.#spec, signal);
  }

  /** What Chromium’s DevTools endpoint answers at `/json/version`. */
  async version(): Promise<BrowserVersion> {
    return this.#reach(callMs, undefined, ({ client, endpoint, signal }) => readVersion(client, endpoint, signal));
  }

  #onPage<T>(
    tabId: string,
    options: CallOptions,
    use: (page: Page, reach: Reach) => Promise<T>,
    timeoutMs = callMs,
  ): Promise<T> {
    return this.#reach(timeoutMs, options.signal, async (reach) => {
      return use(await Page.attachAnswering(reach.cdp, tabId, options), reach);
    });
  }

  /** Calls `use` with a connection of its own, and closes that afterwards. */
  async #reach<T>(timeoutMs: number, given: AbortSignal | undefined, use: (reach: Reach) => Promise<T>): Promise<T> {
    const late = AbortSignal.timeout(timeoutMs);
    const signal = given === undefined ? late : AbortSignal.any([given, late]);
    const over = new AbortController();
    const ends = AbortSignal.any([signal, over.signal]);
    try {
      const [endpoint, cdp] = await this.#open(ends);
      const reach = { client: this.#client, endpoint, cdp, signal: ends, decisionOn: this.#decisionOn };
      return await untilAborted(use(reach), ends);
    } catch (error) {
      given?.throwIfAborted();
      throw await callFailure(error, { isLate: late.aborted, isAlive: () => this.isAlive() });
    } finally {
      over.abort();
    }
  }

  async #open(signal: AbortSignal): Promise<[DevToolsEndpoint, CdpConnection]> {
    const endpoint = await this.endpoint(signal);
    const stream = await dialEndpoint(this.#client, endpoint, signal);
    return [endpoint, await CdpConnection.open(stream, endpoint, signal)];
  }
}

/**
 * Closes the browsers of a computer that is about to stop. A Chromium that ends on a signal does not write its newest
 * cookies to disk.
 */
export async function closeBrowsers(client: HostClient, signal: AbortSignal): Promise<void> {
  const running = (await client.own.listProcesses()).filter(({ state }) => state === 'running');
  const browsers = running.map(startedBy).filter((spec) => spec !== undefined);
  await Promise.all(browsers.map((spec) => new Browser(client, spec).close(signal)));
}

function falseIfEnded(error: unknown): boolean {
  if (error instanceof DomainError && error.code === 'BROWSER_ENDED') return false;
  throw error;
}

async function noDecision(): Promise<undefined> {}
