import { type Admitted, type EgressOwner, refusalByPolicy } from './guard.ts';
import type { Destination } from './hostPattern.ts';

interface Opened {
  to: Admitted;
  /** Whether it leads to a service of Atrium's own. The lists do not apply to these. */
  isOwn: boolean;
}

/**
 * The open connections of one owner. They are checked again while they are open, because a space may deny a host that
 * it allowed a minute ago.
 */
export class OpenConnections {
  readonly #open = new Map<AbortController, Opened>();

  get size(): number {
    return this.#open.size;
  }

  add(to: Admitted, isOwn = false): Disposable & { ended: AbortSignal } {
    const controller = new AbortController();
    this.#open.set(controller, { to, isOwn });
    return { ended: controller.signal, [Symbol.dispose]: () => this.#open.delete(controller) };
  }

  /** Ends the connections that are no longer allowed, or all of them if the owner is gone. */
  async review(owner: EgressOwner | undefined): Promise<void> {
    const ownRefusal = onceEach((to) => refusalOfOwn(to, owner));
    for (const [controller, { to, isOwn }] of [...this.#open]) {
      const { host, port, address } = to;
      let refusal: string | null = '';
      if (owner !== undefined) {
        refusal = isOwn ? await ownRefusal(to) : refusalByPolicy({ host, port }, owner.policy, address);
      }
      if (refusal === null) continue;
      controller.abort();
      await owner?.record({ host, port, purpose: owner.purpose, address: null, refusal });
    }
  }

  endAll(): void {
    for (const controller of this.#open.keys()) controller.abort();
  }
}

async function refusalOfOwn({ host, port }: Destination, owner: EgressOwner | undefined): Promise<string | null> {
  const own = await owner?.own?.({ host, port });
  return own === undefined ? 'no app of the space is connected to it any more' : null;
}

/** Asks once for each destination, however many connections lead there. */
function onceEach<T>(ask: (to: Destination) => Promise<T>): (to: Destination) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (to) => {
    const key = `${to.host}:${to.port}`;
    const answer = known.get(key) ?? ask(to);
    known.set(key, answer);
    return answer;
  };
}
