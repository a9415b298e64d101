/**
 * Notices that nothing has come for a while. One timer that looks at a timestamp: to touch it costs one clock reading,
 * however many tokens a second arrive.
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

  /** Something came. */
  readonly touch = (): void => {
    this.lastMs = performance.now();
  };

  /** While the reader is busy the provider is not to blame for silence. */
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
    // A process that was busy itself finds its timers first and only then what had come meanwhile: look again after
    // that.
    else this.timer = setTimeout(() => (this.leftMs() > 0 ? this.check() : this.onIdle()), 1);
  };

  private leftMs(): number {
    return this.paused ? this.timeoutMs : this.lastMs + this.timeoutMs - performance.now();
  }
}
