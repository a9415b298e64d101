import type { ModelPart, OnModelPart } from './modelCall.ts';

/** A failure of the reader, such as a fenced log writer. It ends the call and is not a provider error. */
export class ReaderFailure {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

/**
 * Passes parts to the reader, one at a time and in order, from the SDK's stream and from the lane around it. While the
 * reader is busy (it returned a promise), silence does not count against the provider.
 */
export class Handover {
  /** The time of the first part. */
  firstMs: number | undefined;
  /** Called when the reader becomes busy, and when it is free again. */
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

  /** Passes a part on when the reader is free, and waits until it is free again. */
  async next(part: ModelPart | undefined): Promise<void> {
    if (this.busy !== undefined) await this.busy;
    this.now(part);
    if (this.busy !== undefined) await this.busy;
  }

  /** Passes a part to a free reader. If the reader fails, the connection is aborted. */
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

  /** Resolves when the reader has handled all parts. */
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
 * Notices when nothing has arrived for a while. A touch only reads the clock, however many tokens arrive per second;
 * one timer checks the last touch.
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
    // A busy process runs its timers before it reads what has arrived, so check once more after the read.
    else this.timer = setTimeout(() => (this.leftMs() > 0 ? this.check() : this.onIdle()), 1);
  };

  private leftMs(): number {
    return this.paused ? this.timeoutMs : this.lastMs + this.timeoutMs - performance.now();
  }
}
