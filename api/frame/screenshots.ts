import { DomainError } from '../../base/errors.ts';
import { Merged } from './merged.ts';

const largestPixels = 3_840 * 2_160;

interface Limits {
  /** Of all screenshots that are made at once: each pixel takes four bytes and more. */
  mostPixels: number;
  /** Of those of one space, so that it does not keep others waiting. */
  mostOfSpace: number;
}

/** What a screenshot is of: a desktop, or a tab of a browser. */
interface Shown {
  id: string;
  spaceId: string;
  width: number;
  height: number;
}

/** Makes screenshots, of each thing that is shown one at a time, and of all together as many as this process has memory for. */
export class Screenshots {
  readonly #limits: Limits;
  readonly #made = new Merged<Buffer>();
  readonly #pixels = new Map<string, number>();

  constructor(limits: Limits = { mostPixels: 6 * largestPixels, mostOfSpace: 2 * largestPixels }) {
    this.#limits = limits;
  }

  /** What it shows as PNG. Whoever asks while one is made shares the next. Throws 503 `SCREENSHOTS_BUSY`. */
  of(session: Shown, server: { screenshot(): Promise<Buffer> }): Promise<Buffer> {
    // In another size it is another picture, for whoever has just resized it.
    return this.#made.run(`${session.id} ${session.width}x${session.height}`, async () => {
      const leave = this.#enter(session);
      try {
        return await server.screenshot();
      } finally {
        leave();
      }
    });
  }

  #enter({ spaceId, width, height }: Shown): () => void {
    const pixels = width * height;
    const ofSpace = this.#pixels.get(spaceId) ?? 0;
    const all = [...this.#pixels.values()].reduce((sum, count) => sum + count, 0);
    if (ofSpace + pixels > this.#limits.mostOfSpace || all + pixels > this.#limits.mostPixels) throw busy();
    this.#pixels.set(spaceId, ofSpace + pixels);
    return () => {
      const left = (this.#pixels.get(spaceId) ?? 0) - pixels;
      if (left > 0) this.#pixels.set(spaceId, left);
      else this.#pixels.delete(spaceId);
    };
  }
}

function busy(): DomainError {
  const detail = 'Too many screenshots are made at the moment. Try again soon.';
  return new DomainError('unavailable', 'SCREENSHOTS_BUSY', detail, { retryAfterSeconds: 1 });
}
