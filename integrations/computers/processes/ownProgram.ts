import { lookUntil } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../hostClient.ts';
import type { ProcessInfo } from '../types.ts';

const lookMs = 10;
const killMs = 10_000;

/** A program that Atrium runs on a computer for a session: an X server, a Chromium, a recorder. */
export class OwnProgram {
  readonly #own: HostClient;
  readonly #processId: string;

  constructor({ own }: HostClient, processId: string) {
    this.#own = own;
    this.#processId = processId;
  }

  /** The process as its computer knows it. Undefined if the computer does not know it. */
  async info(): Promise<ProcessInfo | undefined> {
    try {
      return await this.#own.process(this.#processId);
    } catch (error) {
      if (hasCode(error, 'PROCESS_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  async isAlive(): Promise<boolean> {
    return (await this.info())?.state === 'running';
  }

  /** Sends a signal. Does nothing if the program has ended. */
  async signal(name: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    try {
      await this.#own.signalProcess(this.#processId, name);
    } catch (error) {
      if (!hasCode(error, 'PROCESS_ENDED') && !hasCode(error, 'PROCESS_NOT_FOUND')) throw error;
    }
  }

  async untilEnded(signal?: AbortSignal): Promise<void> {
    await lookUntil(
      () => this.isAlive(),
      (isAlive) => !isAlive,
      { firstMs: lookMs, signal },
    );
  }

  /** Kills the program and everything that it has started. Throws `notEnding()` if it still runs after 10 s. */
  async kill(notEnding: () => Error, signal?: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(killMs);
    try {
      await this.signal('SIGKILL');
      await this.untilEnded(signal === undefined ? late : AbortSignal.any([signal, late]));
    } catch (error) {
      signal?.throwIfAborted();
      throw late.aborted ? notEnding() : error;
    }
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof DomainError && error.code === code;
}
