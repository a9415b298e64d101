import { setTimeout } from 'node:timers/promises';
import { ProxyError } from './connect.ts';
import { Pace } from './pace.ts';

export interface ShareLimits {
  /** Connections at once. */
  most: number;
  /** New connections: so many at once, and then so many each second. */
  burst: number;
  perSecond: number;
}

/** Shares a service with few slots between spaces: limits how many slots each has, and how fast it takes them. */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #now: () => number;
  readonly #of = new Map<string, { open: number; pace: Pace }>();

  constructor(limits: ShareLimits, now = Date.now) {
    this.#limits = limits;
    this.#now = now;
  }

  /** How many keys it remembers. */
  get size(): number {
    return this.#of.size;
  }

  /** Takes a slot until it is disposed of. Throws a `ProxyError` if none is free. */
  async enter(key: string): Promise<Disposable> {
    const { most } = this.#limits;
    const share = this.#of.get(key) ?? this.#begin(key);
    if (share.open >= most) throw new ProxyError(429, `Your space has ${most} connections open: close some first.`);
    const waitMs = share.pace.take();
    if (waitMs === undefined) throw new ProxyError(429, 'These connections are made too often: wait a few seconds.');
    share.open += 1;
    if (waitMs > 0) await setTimeout(waitMs);
    return {
      [Symbol.dispose]: () => {
        share.open -= 1;
      },
    };
  }

  /** Also forgets the keys for which a new share would be the same. */
  #begin(key: string) {
    for (const [known, { open, pace }] of this.#of) if (open === 0 && pace.isFull()) this.#of.delete(known);
    const { burst, perSecond } = this.#limits;
    const share = { open: 0, pace: new Pace(burst, perSecond, undefined, this.#now) };
    this.#of.set(key, share);
    return share;
  }
}
