import { setTimeout as delay } from 'node:timers/promises';
import type { AnswerTo, EventOf } from './cdp/answers.ts';
import type { Commands, Method } from './cdp/commands.ts';
import { type CdpConnection, CommandRefused } from './cdp/connection.ts';
import { browserError } from './failures.ts';
import { said } from './said.ts';
import type { CallOptions, Dialog } from './types.ts';

/** A page that has not answered for so long shows a dialog perhaps that nobody was there to answer. */
const silentMs = 2_000;
const freeMs = 5_000;
const maxDialogs = 20;
const maxMessageLength = 1_000;
const dialogKinds = ['alert', 'confirm', 'prompt', 'beforeunload'] as const;

/** The document in a tab’s main frame, and how far it is. */
interface Loading {
  loaderId: string;
  steps: Set<string>;
}

/** A tab that one call is attached to. While it is, dialogs are answered: they would hold up everything else. */
export class Page {
  readonly cdp: CdpConnection;
  readonly targetId: string;
  /** Of its main frame. */
  readonly sessionId: string;
  readonly dialogs: Dialog[] = [];
  loading: Loading = { loaderId: '', steps: new Set() };
  /** The last document that the main frame has begun to go to. */
  goingTo: string | undefined;
  /** How often the main frame has stopped loading. */
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
    cdp.on('Page.javascriptDialogOpening', (event, of) => of === sessionId && this.#answerDialog(event));
    cdp.on('Page.lifecycleEvent', (event, of) => of === sessionId && this.#follow(event));
    cdp.on('Page.frameStartedNavigating', ({ frameId, loaderId, navigationType }, of) => {
      if (of !== sessionId || frameId !== targetId || navigationType?.startsWith('sameDocument')) return;
      this.goingTo = loaderId;
      this.tell();
    });
    cdp.on('Page.frameStoppedLoading', ({ frameId }, of) => {
      // It has come there, or has given up, as for a download.
      if (of !== sessionId || frameId !== targetId) return;
      this.stops++;
      this.tell();
    });
    cdp.on('Inspector.targetCrashed', (_event, of) => {
      if (of !== sessionId) return;
      this.isCrashed = true;
      this.tell();
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
   * The same for what asks the page itself. Where it does not answer, a dialog that it shows is dismissed: what was
   * opened while nobody was attached, only a look at another tab dismisses. Throws 409 `TAB_CRASHED`.
   */
  static async attachAnswering(cdp: CdpConnection, targetId: string, options: CallOptions): Promise<Page> {
    const page = await Page.attach(cdp, targetId, options);
    if (await page.answers()) return page;
    if (page.isCrashed) throw browserError('TAB_CRASHED', 'This tab has crashed. Reload it.');
    await page.detach();
    const other = await cdp.send('Target.createTarget', { url: 'about:blank' });
    await cdp.send('Target.activateTarget', { targetId });
    await cdp.send('Target.closeTarget', other);
    return Page.attach(cdp, targetId, options);
  }

  /** Has it before the others of its window: what is behind them is not drawn, and takes no input. */
  async show(): Promise<void> {
    const { result } = await this.send('Runtime.evaluate', {
      expression: 'document.visibilityState',
      returnByValue: true,
    });
    if (result.value !== 'visible') await this.cdp.send('Target.activateTarget', { targetId: this.targetId });
  }

  send<M extends Method>(method: M, params: Commands[M]): Promise<AnswerTo<M>> {
    return this.cdp.send(method, params, this.sessionId);
  }

  async detach(): Promise<void> {
    await this.cdp.send('Target.detachFromTarget', { sessionId: this.sessionId });
  }

  /** Whether what draws it answers within a moment. */
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
   * Frees the tab from a page that has crashed, or whose script never ends or shows one dialog after the other: an empty
   * page is of another process. Sent elsewhere at once, Chromium waits for that script for ever, and ends when it is
   * asked again.
   */
  async leave(): Promise<void> {
    await this.send('Page.navigate', { url: 'about:blank' });
    // What the other process was asked, it has not heard.
    this.isCrashed = false;
    this.#enabled = this.#enable();
    await this.answers(freeMs);
  }

  /** Waits until something holds that its events change. Answers whether it does. */
  async until(holds: () => boolean, withinMs: number): Promise<boolean> {
    if (holds()) return true;
    const given = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = () => holds() && resolve();
    this.#watchers.add(look);
    try {
      await Promise.race([promise, delay(withinMs, undefined, { signal: given.signal })]);
      return holds();
    } finally {
      this.#watchers.delete(look);
      given.abort();
    }
  }

  #enable(): Promise<unknown> {
    const enabled = Promise.all([
      this.send('Page.enable', {}),
      this.send('Inspector.enable', {}),
      this.send('Page.setLifecycleEventsEnabled', { enabled: true }),
    ]);
    enabled.catch(() => undefined); // whoever waits for it hears of it
    return enabled;
  }

  #follow({ frameId, loaderId, name }: EventOf<'Page.lifecycleEvent'>): void {
    if (frameId !== this.targetId) return;
    if (loaderId !== this.loading.loaderId) this.loading = { loaderId, steps: new Set() };
    this.loading.steps.add(name);
    this.tell();
  }

  #answerDialog({ type, message }: EventOf<'Page.javascriptDialogOpening'>): void {
    const kind = dialogKinds.find((known) => known === type) ?? 'alert';
    // Else a page could not be left, nor closed.
    const accept = kind === 'beforeunload' || this.#answer.accept;
    const promptText = this.#answer.accept ? this.#answer.text : undefined;
    const answer = accept ? 'accepted' : 'dismissed';
    if (this.dialogs.length < maxDialogs) {
      this.dialogs.push({ kind, message: said(message, maxMessageLength), answer });
    }
    // It may have gone with its page.
    this.send('Page.handleJavaScriptDialog', { accept, ...(promptText !== undefined && { promptText }) }).catch(
      () => undefined,
    );
  }

  tell(): void {
    for (const look of this.#watchers) look();
  }
}

/** Chromium lists parts of its own surface too, usually as targets of another type. */
export function isTab({ type, url }: { type: string; url: string }): boolean {
  return type === 'page' && !/^chrome:\/\/[^/]*\.top-chrome\//.test(url);
}

function noTab() {
  return browserError('TAB_NOT_FOUND', 'There is no such tab in this browser.');
}
