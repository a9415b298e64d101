import { orAfter } from '../../base/async.ts';
import { firstOf } from '../../base/text.ts';
import { type CdpConnection, CommandRefused } from './cdp/connection.ts';
import type { EventName, EventOf, Send } from './cdp/protocol.ts';
import { browserError } from './failures.ts';
import type { CallOptions, Dialog } from './types.ts';

/** A page that has not answered for this long may show a dialog that was opened while no call was attached. */
const silentMs = 2_000;
const freeMs = 5_000;
const maxDialogs = 20;
const maxMessageLength = 1_000;
const dialogKinds = ['alert', 'confirm', 'prompt', 'beforeunload'] as const;

/** The document in a tab’s main frame, and the lifecycle events that it has reached. */
interface Loading {
  loaderId: string;
  steps: Set<string>;
}

/** A tab to which one call is attached. During the call it answers dialogs, which would block everything else. */
export class Page {
  readonly cdp: CdpConnection;
  readonly targetId: string;
  /** The DevTools session of the main frame. */
  readonly sessionId: string;
  readonly dialogs: Dialog[] = [];
  loading: Loading = { loaderId: '', steps: new Set() };
  /** The newest document to which the main frame has begun to navigate. */
  goingTo: string | undefined;
  /** How many times the main frame has stopped loading. */
  stops = 0;
  isCrashed = false;
  readonly #answer: NonNullable<CallOptions['dialogs']>;
  #enabled: Promise<unknown>;
  readonly #watchers = new Set<() => void>();

  private constructor(cdp: CdpConnection, targetId: string, sessionId: string, { dialogs }: CallOptions) {
    this.cdp = cdp;
    this.targetId = targetId;
    this.sessionId = sessionId;
    this.#answer = dialogs ?? { accept: false };
    this.#on('Page.javascriptDialogOpening', (event) => this.#answerDialog(event));
    this.#on('Page.lifecycleEvent', (event) => this.#follow(event));
    this.#on('Page.frameStartedNavigating', ({ frameId, loaderId, navigationType }) => {
      if (frameId === targetId && !navigationType?.startsWith('sameDocument')) this.goingTo = loaderId;
    });
    this.#on('Page.frameStoppedLoading', ({ frameId }) => {
      // The frame has arrived, or has given up because the address was a download.
      if (frameId === targetId) this.stops++;
    });
    this.#on('Inspector.targetCrashed', () => {
      this.isCrashed = true;
    });
    this.#enabled = this.#enable();
  }

  /** Throws 404 `TAB_NOT_FOUND`. */
  static async attach(cdp: CdpConnection, targetId: string, options: CallOptions): Promise<Page> {
    const attaching = cdp.send('Target.attachToTarget', { targetId, flatten: true });
    attaching.catch(() => undefined);
    const { targetInfos } = await cdp.send('Target.getTargets', {});
    if (!targetInfos.some((info) => info.targetId === targetId && isTab(info))) throw noTab();
    try {
      return new Page(cdp, targetId, (await attaching).sessionId, options);
    } catch (error) {
      throw error instanceof CommandRefused ? noTab() : error;
    }
  }

  /**
   * Attaches to a page that is to answer questions. If it does not answer, this dismisses the dialog that it may show:
   * Chromium dismisses a dialog that was opened before we attached only when another tab comes to the front. Throws 409
   * `TAB_CRASHED`.
   */
  static async attachAnswering(cdp: CdpConnection, targetId: string, options: CallOptions): Promise<Page> {
    const page = await Page.attach(cdp, targetId, options);
    if (await page.answers()) return page;
    if (page.isCrashed) throw browserError('TAB_CRASHED', 'This tab has crashed. Reload it.');
    await cdp.send('Target.detachFromTarget', { sessionId: page.sessionId });
    const other = await cdp.send('Target.createTarget', { url: 'about:blank' });
    await cdp.send('Target.activateTarget', { targetId });
    await cdp.send('Target.closeTarget', other);
    return Page.attach(cdp, targetId, options);
  }

  /** Brings the tab to the front of its window: Chromium neither draws a tab behind another nor gives it input. */
  async show(): Promise<void> {
    const expression = 'document.visibilityState';
    const { result } = await this.send('Runtime.evaluate', { expression, returnByValue: true });
    if (result.value !== 'visible') await this.cdp.send('Target.activateTarget', { targetId: this.targetId });
  }

  readonly send: Send = (method, params) => this.cdp.send(method, params, this.sessionId);

  /** Whether the page’s renderer answers within this time. */
  async answers(withinMs = silentMs): Promise<boolean> {
    let isThere = false;
    this.#enabled.then(
      () => {
        isThere = true;
        this.tell();
      },
      () => undefined,
    );
    await this.until(() => isThere || this.isCrashed, withinMs);
    return isThere && !this.isCrashed;
  }

  /**
   * Frees the tab from a page that has crashed, whose script never ends, or that shows one dialog after the other. It
   * opens an empty page, which has another process. If Chromium is sent to a real page at once, it waits for the script
   * for ever, and it ends when it is sent there again.
   */
  async leave(): Promise<void> {
    await this.send('Page.navigate', { url: 'about:blank' });
    // The new process does not know the commands that the old one got.
    this.isCrashed = false;
    this.#enabled = this.#enable();
    await this.answers(freeMs);
  }

  /** Waits until a condition holds that events of the page change. Answers whether it holds. */
  async until(holds: () => boolean, withinMs: number): Promise<boolean> {
    if (holds()) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = () => holds() && resolve();
    this.#watchers.add(look);
    try {
      await orAfter(promise, withinMs, undefined);
      return holds();
    } finally {
      this.#watchers.delete(look);
    }
  }

  /** Makes all calls of `until` check their conditions again. */
  tell(): void {
    for (const look of this.#watchers) look();
  }

  /** Follows an event of this page alone. */
  #on<E extends EventName>(name: E, take: (event: EventOf<E>) => void): void {
    this.cdp.on(name, (event, sessionId) => {
      if (sessionId !== this.sessionId) return;
      take(event);
      this.tell();
    });
  }

  #enable(): Promise<unknown> {
    const enabled = Promise.all([
      this.send('Page.enable', {}),
      this.send('Inspector.enable', {}),
      this.send('Page.setLifecycleEventsEnabled', { enabled: true }),
    ]);
    enabled.catch(() => undefined); // `answers` handles it.
    return enabled;
  }

  #follow({ frameId, loaderId, name }: EventOf<'Page.lifecycleEvent'>): void {
    if (frameId !== this.targetId) return;
    if (loaderId !== this.loading.loaderId) this.loading = { loaderId, steps: new Set() };
    this.loading.steps.add(name);
  }

  #answerDialog({ type, message }: EventOf<'Page.javascriptDialogOpening'>): void {
    const kind = dialogKinds.find((known) => known === type) ?? 'alert';
    // A `beforeunload` that is dismissed keeps the page from being left or closed.
    const accept = kind === 'beforeunload' || this.#answer.accept;
    const promptText = this.#answer.accept ? this.#answer.text : undefined;
    const answer = accept ? 'accepted' : 'dismissed';
    if (this.dialogs.length < maxDialogs) {
      this.dialogs.push({ kind, message: said(message, maxMessageLength), answer });
    }
    const answered = this.send('Page.handleJavaScriptDialog', {
      accept,
      ...(promptText !== undefined && { promptText }),
    });
    answered.catch(() => undefined); // The dialog may have gone with its page.
  }
}

/** Whether a target is a tab. Chromium lists parts of its own user interface too, usually with another type. */
export function isTab({ type, url }: { type: string; url: string }): boolean {
  return type === 'page' && !/^chrome:\/\/[^/]*\.top-chrome\//.test(url);
}

function noTab() {
  return browserError('TAB_NOT_FOUND', 'There is no such tab in this browser.');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it removes control characters
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** A page’s own text, fit to be stored and shown: short enough, in whole characters, without control characters. */
export function said(text: string, maxLength: number): string {
  return firstOf(firstOf(text, maxLength).toWellFormed().replace(controls, ' '), maxLength);
}

/** An address from a page, treated likewise. */
export function saidUrl(url: string): string {
  return said(url, 2_048);
}
