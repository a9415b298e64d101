import { condition, sleep } from '@temporalio/workflow';

/**
 * How much working time a turn has left, in milliseconds. Time spent waiting for its client, or for approval, does not
 * count.
 */
export class WorkingTime {
  #leftMs: number;
  #since: number | undefined = Date.now();

  constructor(leftMs: number) {
    this.#leftMs = leftMs;
  }

  get leftMs(): number {
    return this.#leftMs - (this.#since === undefined ? 0 : Date.now() - this.#since);
  }

  pause(): void {
    this.#leftMs = this.leftMs;
    this.#since = undefined;
  }

  resume(): void {
    this.#since ??= Date.now();
  }

  /**
   * Resolves when no time is left. A pause does not cancel the timer: when it fires, the time left is computed anew. So
   * a turn that never waits needs only one timer.
   */
  async over(): Promise<void> {
    while (this.leftMs > 0) {
      await sleep(this.leftMs);
      await condition(() => this.#since !== undefined);
    }
  }
}
