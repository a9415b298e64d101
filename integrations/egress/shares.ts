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
  readonly #of = new Map<string, { open: number; pace: Pace }>();

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /** Takes a slot until it is disposed of. Throws a `ProxyError` if none is free. */
  async enter(key: string): Promise<Disposable> {
    const { most, burst, perSecond } = this.#limits;
    const share = this.#of.get(key) ?? { open: 0, pace: new Pace(burst, perSecond) };
    this.#of.set(key, share);
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
}
