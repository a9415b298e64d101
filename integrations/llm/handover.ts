import type { IdleWatch } from './idleWatch.ts';
import type { ModelPart, OnModelPart } from './modelCall.ts';

/** The reader's own failure (a fenced log writer, say): it ends the call and is nobody's provider error. */
export class ReaderFailure {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

/**
 * Gives the parts to the reader, one at a time and in order, from both ways on which they come: the SDK's stream and
 * the lane around it. While the reader is busy with one (it returned a promise) nobody is told that the provider is
 * silent.
 */
export class Handover {
  /** When the first part was given. */
  firstMs: number | undefined;
  /** Told when the reader begins and ends to be busy. */
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

  /** Gives a part when the reader is free, and waits until it is free again. */
  async next(part: ModelPart | undefined): Promise<void> {
    if (this.busy !== undefined) await this.busy;
    this.now(part);
    if (this.busy !== undefined) await this.busy;
  }

  /** Gives a part to a reader that is free. Its failure ends the connection. */
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

  /** Resolves when the reader is done with all it was given. */
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
