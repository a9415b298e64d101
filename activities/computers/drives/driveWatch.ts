import { setTimeout as delay } from 'node:timers/promises';
import { Changes } from '../../../base/async.ts';
import { type DriveAuthority, driveAuthorities } from '../../../models/computers/driveAuthority.ts';
import type { Database } from '../../../models/database/database.ts';
import { revisionsOf } from '../../../models/drive/feed.ts';
import type { Logger } from '../../../telemetry/logger.ts';

const lookMs = 300;

interface Waiter {
  computerId: string;
  spaceId: string;
  after: number;
  access: DriveAuthority['access'] | undefined;
  wake: () => void;
}

/**
 * Waits for changes of drives, for all computers of a host together: two statements each time while anyone waits. A
 * change by this process is seen at once.
 */
export class DriveWatch {
  readonly #deps: { database: Database; logger: Logger };
  readonly #waiting = new Set<Waiter>();
  readonly #told = new Changes();
  #isLooking = false;

  constructor(deps: { database: Database; logger: Logger }) {
    this.#deps = deps;
  }

  /** Settles when the drive may be ahead of a revision, when the access may be another, or when the time is over. */
  async wait(where: Omit<Waiter, 'wake'>, { waitMs, signal }: { waitMs: number; signal: AbortSignal }): Promise<void> {
    const woken = Promise.withResolvers<void>();
    const wake = () => woken.resolve();
    const waiter = { ...where, wake };
    const timer = setTimeout(wake, waitMs);
    signal.addEventListener('abort', wake, { once: true });
    this.#waiting.add(waiter);
    void this.#lookOn();
    try {
      await woken.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      this.#waiting.delete(waiter);
    }
  }

  /** This process has changed a drive. */
  tell(): void {
    this.#told.tell();
  }

  async #lookOn(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#waiting.size > 0) {
        const told = this.#told.next;
        await this.#look().catch((error: unknown) => {
          this.#deps.logger.warn({ err: error }, 'The drives of computers could not be looked at; trying again.');
        });
        const pause = new AbortController();
        const { signal } = pause;
        await Promise.race([delay(lookMs, undefined, { signal, ref: false }).catch(() => undefined), told]);
        pause.abort();
      }
    } finally {
      this.#isLooking = false;
    }
  }

  async #look(): Promise<void> {
    const { database } = this.#deps;
    const waiters = [...this.#waiting];
    const [revisions, authorities] = await Promise.all([
      revisionsOf(database, [...new Set(waiters.map(({ spaceId }) => spaceId))]),
      driveAuthorities(database, [...new Set(waiters.map(({ computerId }) => computerId))]),
    ]);
    for (const { spaceId, computerId, after, access, wake } of waiters) {
      const now = authorities.get(computerId)?.access ?? 'none';
      if ((revisions.get(spaceId) ?? 0) > after || now !== access) wake();
    }
  }
}
