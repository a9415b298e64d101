import type { Duplex } from 'node:stream';
import type { HostClient } from '../computers/hostClient.ts';
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

/**
 * The Chromium of a session, on a computer that runs. Where it has ended, every call but `start` and `close` throws 502
 * `BROWSER_ENDED`; where it does not answer in time, 504 `BROWSER_NOT_ANSWERING`.
 */
export class Browser {
  readonly #client: HostClient;
  readonly #spec: BrowserSpec;

  constructor(client: HostClient, spec: BrowserSpec) {
    this.#client = client;
    this.#spec = spec;
  }

  /**
   * Starts it, unless it runs, and settles when it takes clients. Throws 422 `BROWSERS_UNAVAILABLE` where the computer
   * has no Chromium, 409 `PROFILE_IN_USE` where another browser has the profile, 502 `BROWSER_ENDED` where it has ended.
   */
  start(_signal: AbortSignal): Promise<void> {
    return this.#notYet();
  }

  /** Whether it runs still, as far as its computer knows. */
  isAlive(): Promise<boolean> {
    return this.#notYet();
  }

  /**
   * Has it write down cookies and storage and end; settles when nothing of it runs, also where it was not there. One
   * that does not end by itself is killed.
   */
  close(_signal: AbortSignal): Promise<void> {
    return this.#notYet();
  }

  tabs(_options?: CallOptions): Promise<Tab[]> {
    return this.#notYet();
  }

  /** Throws 422 `URL_REFUSED`, 429 `TOO_MANY_TABS`, and as `navigate` does. */
  openTab(_url: string, _options?: CallOptions): Promise<TabOutcome> {
    return this.#notYet();
  }

  /**
   * Settles when the page is there, as far as it can be read; what it still loads is not waited for. Throws 404
   * `TAB_NOT_FOUND`, 422 `URL_REFUSED`, and 502 `NAVIGATION_FAILED` with Chromium’s own word, such as
   * `net::ERR_NAME_NOT_RESOLVED`, in its detail.
   */
  navigate(_tabId: string, _to: Navigation, _options?: CallOptions): Promise<TabOutcome> {
    return this.#notYet();
  }

  activateTab(_tabId: string, _options?: CallOptions): Promise<Tab> {
    return this.#notYet();
  }

  /** The last one of a browser is replaced by an empty one, for without any it would end. */
  closeTab(_tabId: string, _options?: CallOptions): Promise<void> {
    return this.#notYet();
  }

  /** As PNG. A full page is cut where it is too long. */
  screenshot(_tabId: string, _options: CallOptions & { isFullPage?: boolean }): Promise<Buffer> {
    return this.#notYet();
  }

  /** Throws 409 `PDF_TOO_LARGE`. */
  pdf(_tabId: string, _options?: CallOptions): Promise<Buffer> {
    return this.#notYet();
  }

  shown(_tabId: string, _options?: CallOptions): Promise<ShownTab> {
    return this.#notYet();
  }

  /** References hold as long as the element and its document do. */
  read(_tabId: string, _options?: ReadOptions): Promise<PageText> {
    return this.#notYet();
  }

  /**
   * Throws 409 `ELEMENT_GONE` for a reference whose element is not there any more, `ELEMENT_NOT_VISIBLE`, 422
   * `ACTION_REFUSED` where the element is of a kind that does not take it.
   */
  act(_tabId: string, _action: PageAction, _options?: CallOptions): Promise<ActOutcome> {
    return this.#notYet();
  }

  endpoint(_signal?: AbortSignal): Promise<DevToolsEndpoint> {
    return this.#notYet();
  }

  /** Raw bytes to its DevTools endpoint, for somebody else’s client. */
  connect(_signal: AbortSignal): Promise<Duplex> {
    return this.#notYet();
  }

  #notYet(): Promise<never> {
    return Promise.reject(new Error(`${this.#spec.id} is not driven yet by ${this.#client.constructor.name}.`));
  }
}
