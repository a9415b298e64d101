import { DomainError } from '../../base/errors.ts';
import { Merged } from '../../base/merged.ts';

const largestPixels = 3_840 * 2_160;

interface Limits {
  /** Pixels of all screenshots being taken at once. Each pixel takes four bytes or more. */
  mostPixels: number;
  /** Pixels of one space's screenshots, so that the space does not keep others waiting. */
  mostOfSpace: number;
}

/** What a screenshot shows: a desktop, or a tab of a browser. */
interface Shown {
  id: string;
  spaceId: string;
  width: number;
  height: number;
}

/** Takes screenshots: one at a time per session, and in all only as many as this process has memory for. */
export class Screenshots {
  readonly #limits: Limits;
  readonly #made = new Merged<Buffer>();
  readonly #pixels = new Map<string, number>();

  constructor(limits: Limits = { mostPixels: 6 * largestPixels, mostOfSpace: 2 * largestPixels }) {
    this.#limits = limits;
  }

  /** A PNG of the session. Callers that ask during one screenshot share the next. Throws 503 `SCREENSHOTS_BUSY`. */
  of(session: Shown, server: { screenshot(): Promise<Buffer> }): Promise<Buffer> {
    // The size is part of the key: a caller that has just resized the session needs the new size.
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
  const detail = 'Too many screenshots are being taken. Try again in a moment.';
  return new DomainError('unavailable', 'SCREENSHOTS_BUSY', detail, { retryAfterSeconds: 1 });
}
