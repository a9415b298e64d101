import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { act, mostWaitMs } from './act/act.ts';
import { callFailure } from './callFailures.ts';
import { CdpConnection } from './cdp/connection.ts';
import { socketOn } from './cdp/socket.ts';
import { ChromiumProcess } from './chromiumProcess.ts';
import { dialEndpoint, readEndpoint } from './endpoint.ts';
import { browserError } from './failures.ts';
import { goTo, outcome } from './goTo.ts';
import { requireUrl } from './navigate.ts';
import { Page } from './page.ts';
import type { DecisionOn } from './pageFailures.ts';
import { pdf, screenshot, shown } from './pictures.ts';
import { readPage } from './read/readPage.ts';
import { listTabs, maxTabs, type Reach, tabIds, tabOf, tabsBeside } from './tabs.ts';
import type {
  ActOutcome,
  BrowserSpec,
  CallOptions,
  DevToolsEndpoint,
  Navigation,
  PageAction,
  PageText,
  ReadOptions,
  ShownTab,
  Tab,
  TabOutcome,
} from './types.ts';
import { type BrowserVersion, readVersion } from './version.ts';

const callMs = 30_000;
const navigateMs = 60_000;
/** Until it has written down what is to be kept. */
const closeMs = 8_000;
const lookMs = 10;

/**
 * The Chromium of a session, on a computer that runs. Where it has ended, every call but `start` and `close` throws 502
 * `BROWSER_ENDED`; where it does not answer in time, 504 `BROWSER_NOT_ANSWERING`.
 */
export class Browser {
  readonly #client: HostClient;
  readonly #spec: BrowserSpec;
  readonly #decisionOn: DecisionOn;
  readonly #process: ChromiumProcess;

  /** With what the way out of its computer has decided, a page that it has refused says why. */
  constructor(client: HostClient, spec: BrowserSpec, { decisionOn = noDecision }: { decisionOn?: DecisionOn } = {}) {
    this.#client = client;
    this.#spec = spec;
    this.#decisionOn = decisionOn;
    this.#process = new ChromiumProcess(client, spec);
  }

  /**
   * Starts it, unless it runs, and settles when it takes clients. Throws 422 `BROWSERS_UNAVAILABLE` where the computer
   * has no Chromium, 409 `PROFILE_IN_USE` where another browser has the profile, 422 `PROFILE_UNUSABLE` where that
   * cannot be written, 502 `BROWSER_ENDED`.
   */
  start(signal: AbortSignal): Promise<void> {
    return this.#process.start(signal, () => this.#hasEndpoint(signal));
  }

  /** Whether it runs still, as far as its computer knows. */
  isAlive(): Promise<boolean> {
    return this.#process.isAlive();
  }

  /**
   * Has it write down cookies and storage and end; settles when nothing of it runs, also where it was not there. One
   * that does not end by itself is killed.
   */
  async close(signal: AbortSignal): Promise<void> {
    if (!(await this.isAlive())) return;
    const late = AbortSignal.any([signal, AbortSignal.timeout(closeMs)]);
    try {
      const [, cdp] = await this.#open(late);
      // Its connection ends with it, mostly before it answers.
      await cdp.send('Browser.close', {}).catch(() => undefined);
      await this.#process.untilEnded(late);
    } catch {
      signal.throwIfAborted();
      await this.#process.kill(signal);
    }
  }

  tabs({ signal }: CallOptions = {}): Promise<Tab[]> {
    return this.#reach(callMs, signal, listTabs);
  }

  /** Throws 422 `URL_REFUSED`, 429 `TOO_MANY_TABS`, and as `navigate` does. */
  async openTab(url: string, options: CallOptions = {}): Promise<TabOutcome> {
    const to = requireUrl(url);
    return this.#reach(navigateMs, options.signal, async (reach) => {
      if ((await tabIds(reach.cdp)).size >= maxTabs) {
        throw browserError('TOO_MANY_TABS', `A browser has at most ${maxTabs} tabs. Close some.`, {
          retryAfterSeconds: 1,
        });
      }
      const { targetId } = await reach.cdp.send('Target.createTarget', { url: 'about:blank' });
      try {
        const page = await Page.attach(reach.cdp, targetId, options);
        return await goTo(reach, page, { url: to });
      } catch (error) {
        // The caller does not learn of this tab, so a second attempt would leave another.
        await closeTarget(reach.cdp, targetId).catch(() => undefined);
        throw error;
      }
    });
  }

  /**
   * Settles when the page is there, as far as it can be read; what it still loads is not waited for. Throws 404
   * `TAB_NOT_FOUND`, 422 `URL_REFUSED`, 409 `NO_HISTORY`, 504 `NAVIGATION_TIMEOUT`, 502 `NAVIGATION_FAILED` with
   * Chromium’s own word, such as `net::ERR_CONNECTION_RESET`, in its detail, and where the way out has refused it, 422
   * `EGRESS_REFUSED`, 502 `EGRESS_UNRESOLVED` or `EGRESS_UNREACHABLE`, 429 `EGRESS_BUSY`.
   */
  navigate(tabId: string, to: Navigation, options: CallOptions = {}): Promise<TabOutcome> {
    return this.#reach(navigateMs, options.signal, async (reach) => {
      const page = await Page.attach(reach.cdp, tabId, options);
      return goTo(reach, page, to);
    });
  }

  activateTab(tabId: string, options: CallOptions = {}): Promise<Tab> {
    return this.#reach(callMs, options.signal, async (reach) => {
      const page = await Page.attach(reach.cdp, tabId, options);
      await reach.cdp.send('Target.activateTarget', { targetId: tabId });
      return tabOf(reach, page);
    });
  }

  /** The last one of a browser is replaced by an empty one, for without any it would end. */
  closeTab(tabId: string, options: CallOptions = {}): Promise<void> {
    return this.#reach(callMs, options.signal, async ({ cdp }) => {
      // Attached, so that what asks whether to leave is answered.
      await Page.attach(cdp, tabId, options);
      if ((await tabIds(cdp)).size === 1) await cdp.send('Target.createTarget', { url: 'about:blank' });
      await closeTarget(cdp, tabId);
    });
  }

  /** As PNG. A full page is cut where it is too long. */
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

  /** References hold as long as the element and its document do. Throws 409 `PAGE_TOO_LARGE`. */
  read(tabId: string, { maxLength, ...options }: ReadOptions = {}): Promise<PageText> {
    return this.#onPage(tabId, options, async (page, reach) => {
      const { text, isCut } = await readPage(page, maxLength);
      return { tab: await tabOf(reach, page), text, isCut, dialogs: page.dialogs };
    });
  }

  /**
   * Throws 409 `ELEMENT_GONE` for a reference whose element is not there any more, `ELEMENT_NOT_VISIBLE`,
   * `ELEMENT_COVERED`, 422 `ACTION_REFUSED` where the element is of a kind that does not take it, 504 `NOT_SEEN`.
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

  endpoint(signal: AbortSignal): Promise<DevToolsEndpoint> {
    return readEndpoint(this.#client, this.#spec, signal);
  }

  /**
   * A WebSocket to its DevTools endpoint, for somebody else’s client, which takes what it will send once it is open, and
   * the stream that it is on. The signal ends both.
   */
  async attach(signal: AbortSignal): Promise<{ socket: WebSocket; stream: Duplex }> {
    const endpoint = await this.endpoint(signal);
    const stream = await dialEndpoint(this.#client, endpoint, signal);
    return { socket: socketOn(stream, endpoint), stream };
  }

  /** Which Chromium it is, as its DevTools endpoint says at `/json/version`. */
  async version(): Promise<BrowserVersion> {
    return this.#reach(callMs, undefined, readVersion);
  }

  #hasEndpoint(signal: AbortSignal): Promise<boolean> {
    return this.endpoint(signal).then(
      () => true,
      (error: unknown) => {
        if (error instanceof DomainError && error.code === 'BROWSER_ENDED') return false;
        throw error;
      },
    );
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

  /** Does something on a connection, which ends with it. */
  async #reach<T>(timeoutMs: number, given: AbortSignal | undefined, use: (reach: Reach) => Promise<T>): Promise<T> {
    const late = AbortSignal.timeout(timeoutMs);
    const signal = given === undefined ? late : AbortSignal.any([given, late]);
    const over = new AbortController();
    const ends = AbortSignal.any([signal, over.signal]);
    try {
      const [endpoint, cdp] = await this.#open(ends);
      return await Promise.race([
        use({ client: this.#client, endpoint, cdp, signal: ends, decisionOn: this.#decisionOn }),
        untilOver(ends),
      ]);
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

/** Settles when the tab is gone: Chromium closes it some time after it has answered. */
async function closeTarget(cdp: CdpConnection, targetId: string): Promise<void> {
  await cdp.send('Target.closeTarget', { targetId });
  while ((await tabIds(cdp)).has(targetId)) await delay(lookMs);
}

async function noDecision(): Promise<undefined> {}

/** Rejects when a call is over, whatever it still waits for. */
function untilOver(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
