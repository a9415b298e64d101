/** The progress of one part of a backup or a restore. */
export interface PartProgress {
  part: string;
  /** `done` and `total` are bytes. The total may be an estimate. */
  done: number;
  total: number;
  bytesPerSecond: number;
  /** Null until it can be estimated. */
  secondsLeft: number | null;
}

export type Watch = (progress: PartProgress) => void;

/** The fixed cost of an object, as a number of bytes. Many objects are small. */
export const objectWeight = 65_536;

const tellEveryMs = 1_000;

/** Reports the progress of each part: at its beginning, every second while it advances, and at its end. */
export class Pace {
  readonly #watch: Watch | undefined;
  #part = '';
  #total = 0;
  #done = 0;
  #begunAt = 0;
  #toldAt = 0;

  constructor(watch: Watch | undefined) {
    this.#watch = watch;
  }

  begin(part: string, total: number): void {
    [this.#part, this.#total, this.#done] = [part, total, 0];
    this.#begunAt = performance.now();
    this.#tell();
  }

  add(bytes: number): void {
    this.reach(this.#done + bytes);
  }

  /** Like {@link add}, but with the sum. */
  reach(done: number): void {
    this.#done = done;
    if (performance.now() - this.#toldAt >= tellEveryMs) this.#tell();
  }

  end(): void {
    this.#total = this.#done;
    this.#tell();
  }

  #tell(): void {
    this.#toldAt = performance.now();
    if (this.#watch === undefined) return;
    // The estimate may have been too low.
    const [done, total] = [Math.round(this.#done), Math.round(Math.max(this.#done, this.#total))];
    const seconds = (this.#toldAt - this.#begunAt) / 1_000;
    const bytesPerSecond = seconds > 0 ? Math.round(done / seconds) : 0;
    const secondsLeft = bytesPerSecond > 0 ? Math.round((total - done) / bytesPerSecond) : null;
    this.#watch({ part: this.#part, done, total, bytesPerSecond, secondsLeft });
  }
}
