/**
 * Notices that nothing has arrived for a while. One timer checks a timestamp, so a touch only costs a clock reading,
 * however many tokens arrive per second.
 */
export class IdleWatch {
  private readonly timeoutMs: number;
  private readonly onIdle: () => void;
  private lastMs = performance.now();
  private paused = false;
  private timer: NodeJS.Timeout;

  constructor(timeoutMs: number, onIdle: () => void) {
    this.timeoutMs = timeoutMs;
    this.onIdle = onIdle;
    this.timer = setTimeout(this.check, timeoutMs);
  }

  /** Something arrived. */
  readonly touch = (): void => {
    this.lastMs = performance.now();
  };

  /** While the reader is busy, silence is not the provider's fault. */
  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.touch();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private readonly check = (): void => {
    const leftMs = this.leftMs();
    if (leftMs > 0) this.timer = setTimeout(this.check, leftMs);
    // A process that was busy runs its timers before it reads what has arrived: check again after that.
    else this.timer = setTimeout(() => (this.leftMs() > 0 ? this.check() : this.onIdle()), 1);
  };

  private leftMs(): number {
    return this.paused ? this.timeoutMs : this.lastMs + this.timeoutMs - performance.now();
  }
}
