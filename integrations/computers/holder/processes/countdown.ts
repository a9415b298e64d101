const longestTimerMs = 2_147_483_647;

/** Calls once its time is over. It can stand still, as what it is for does. */
export class Countdown {
  readonly #then: () => void;
  #leftMs: number;
  #runs: { since: number; timer: NodeJS.Timeout } | undefined;

  constructor(ms: number, then: () => void) {
    this.#leftMs = Math.min(ms, longestTimerMs);
    this.#then = then;
    this.resume();
  }

  pause(): void {
    if (this.#runs === undefined) return;
    clearTimeout(this.#runs.timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#runs.since));
    this.#runs = undefined;
  }

  resume(): void {
    this.#runs ??= { since: performance.now(), timer: setTimeout(this.#then, this.#leftMs) };
  }
}
