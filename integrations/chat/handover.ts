import type { ModelPart, OnModelPart } from './modelCall.ts';

/** The reader's own failure (a fenced log writer, say): it ends the call and is not a provider error. */
export class ReaderFailure {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

/**
 * Hands the parts to the reader, one at a time and in order, from both sources: the SDK's stream and the lane around
 * it. While the reader is busy (it returned a promise), silence does not count against the provider.
 */
export class Handover {
  /** When the first part was given. */
  firstMs: number | undefined;
  /** Called when the reader becomes busy and when it is free again. */
  onBusy: (busy: boolean) => void = () => {};
  private busy: Promise<void> | undefined;
  private readonly onPart: OnModelPart;
  private readonly watch: IdleWatch;
  private readonly connection: AbortController;

  constructor(onPart: OnModelPart, watch: IdleWatch, connection: AbortController) {
    this.onPart = onPart;
    this.watch = watch;
    this.connection = connection;
  }

  /** Hands over a part when the reader is free, and waits until it is free again. */
  async next(part: ModelPart | undefined): Promise<void> {
    if (this.busy !== undefined) await this.busy;
    this.now(part);
    if (this.busy !== undefined) await this.busy;
  }

  /** Hands a part to a free reader. The reader's failure ends the connection. */
  now(part: ModelPart | undefined): void {
    if (part === undefined || this.connection.signal.aborted) return;
    this.firstMs ??= performance.now();
    try {
      const busy = this.onPart(part);
      if (busy !== undefined) this.wait(busy);
    } catch (error) {
      this.connection.abort(new ReaderFailure(error));
    }
  }

  /** Resolves when the reader is done with everything it was given. */
  async idle(): Promise<void> {
    await this.busy;
    this.connection.signal.throwIfAborted();
  }

  private wait(busy: Promise<void>): void {
    this.watch.pause();
    this.onBusy(true);
    this.busy = busy
      .catch((error: unknown) => this.connection.abort(new ReaderFailure(error)))
      .then(() => {
        this.busy = undefined;
        this.onBusy(false);
        this.watch.resume();
      });
  }
}

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
