import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../base/errors.ts';
import { home } from '../computers/bubblewrap/view.ts';
import type { HostClient } from '../computers/hostClient.ts';
import { exitCodes, startRequest } from './chromium.ts';
import { ended } from './endpoint.ts';
import { browserError } from './failures.ts';
import type { BrowserSpec } from './types.ts';

const killMs = 10_000;
const lookMs = 10;
/** What Chromium says on standard error as soon as it takes clients. */
const listening = /^DevTools listening on ws:/m;
const maxLineLength = 1_000;

/** The process of a session’s Chromium, with all that it starts. */
export class ChromiumProcess {
  readonly #client: HostClient;
  readonly #spec: BrowserSpec;

  constructor(client: HostClient, spec: BrowserSpec) {
    this.#client = client;
    this.#spec = spec;
  }

  /**
   * Starts it, unless it runs, and settles when it says that it listens and it is known where. Throws what
   * `Browser.start` does.
   */
  async start(signal: AbortSignal, isKnown: () => Promise<boolean>): Promise<void> {
    const { own } = this.#client;
    await own.startProcess(startRequest(this.#spec, home));
    let text = '';
    for await (const { kind, payload } of own.output(this.#spec.id, { follow: true, signal })) {
      if (kind === 'stderr') text = text.slice(-maxLineLength) + Buffer.from(payload).toString('latin1');
      if (listening.test(text)) break;
    }
    // It says so a moment before it has written down where.
    for (;;) {
      await this.#requireAlive();
      if (await isKnown()) return;
      await delay(lookMs, undefined, { signal });
    }
  }

  async isAlive(): Promise<boolean> {
    try {
      return (await this.#client.own.process(this.#spec.id)).state === 'running';
    } catch (error) {
      if (error instanceof DomainError && error.code === 'PROCESS_NOT_FOUND') return false;
      throw error;
    }
  }

  async untilEnded(signal: AbortSignal): Promise<void> {
    while (await this.isAlive()) await delay(lookMs, undefined, { signal });
  }

  /** Settles when nothing of it runs. Throws 504 `BROWSER_NOT_ENDING`. */
  async kill(signal: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(killMs);
    await this.#client.own.signalProcess(this.#spec.id, 'SIGKILL').catch(whereEnded);
    try {
      await this.untilEnded(AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      if (late.aborted) throw browserError('BROWSER_NOT_ENDING', 'It runs still.');
      throw error;
    }
  }

  async #requireAlive(): Promise<void> {
    const { state, exitCode } = await this.#client.own.process(this.#spec.id);
    if (state === 'running') return;
    if (exitCode === exitCodes.missing) {
      const detail = 'This computer has no Chromium: its operator installs it, and what docs/browsers.md names.';
      throw browserError('BROWSERS_UNAVAILABLE', detail);
    }
    if (exitCode === exitCodes.profileInUse) {
      throw browserError('PROFILE_IN_USE', 'Another browser of this computer has this profile.');
    }
    if (exitCode === exitCodes.profileUnusable) {
      throw browserError(
        'PROFILE_UNUSABLE',
        'The folder of this profile, or that of its downloads, cannot be written.',
      );
    }
    throw ended();
  }
}

function whereEnded(error: unknown): void {
  const codes = ['PROCESS_ENDED', 'PROCESS_NOT_FOUND'];
  if (!(error instanceof DomainError) || !codes.includes(error.code)) throw error;
}
