import { condition, sleep } from '@temporalio/workflow';

/**
 * How long a turn may work yet, in milliseconds. Time in which it waits for its client, or for leave, is not counted.
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
   * Settles when nothing is left. One timer is enough for a turn that does not wait: a pause cancels none, it is seen
   * when the timer fires.
   */
  async over(): Promise<void> {
    while (this.leftMs > 0) {
      await sleep(this.leftMs);
      await condition(() => this.#since !== undefined);
    }
  }
}
