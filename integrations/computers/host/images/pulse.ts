import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../system/ifThere.ts';
import { HostError } from '../hostErrors.ts';

/** Watches whether a registry still sends something. A program that fetches from it may wait for ever. */
export class Pulse implements Disposable {
  readonly #stopping = new AbortController();
  readonly #timer: NodeJS.Timeout;

  /** Looks several times within `silentMs` at a number that grows. */
  constructor(look: () => number, silentMs: number) {
    let seen = { count: look(), atMs: performance.now() };
    this.#timer = setInterval(() => {
      const count = look();
      if (count !== seen.count) seen = { count, atMs: performance.now() };
      else if (performance.now() - seen.atMs >= silentMs) {
        this.#stopping.abort(
          new HostError('REGISTRY_TIMED_OUT', `the registry said nothing for ${silentMs / 1_000} s`),
        );
      }
    }, silentMs / 4);
    this.#timer.unref();
  }

  /** Aborted when nothing has come for too long. */
  get stopped(): AbortSignal {
    return this.#stopping.signal;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** The bytes of an image that is being fetched into this folder. */
export function pulledBytes(folder: string): number {
  const sizes = [folder, join(folder, 'blobs', 'sha256')].flatMap((each) =>
    (ifThere(() => readdirSync(each, { withFileTypes: true })) ?? [])
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(each, entry.name), { throwIfNoEntry: false })?.size ?? 0),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
