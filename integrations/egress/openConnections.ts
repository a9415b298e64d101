import { type Admitted, type EgressOwner, refusalByPolicy } from './guard.ts';

/**
 * The open connections of one owner. The lists are looked at again while they are open, for a space may deny what it
 * has allowed a minute ago.
 */
export class OpenConnections {
  readonly #open = new Map<AbortController, Admitted>();

  get size(): number {
    return this.#open.size;
  }

  add(to: Admitted): Disposable & { ended: AbortSignal } {
    const controller = new AbortController();
    this.#open.set(controller, to);
    return { ended: controller.signal, [Symbol.dispose]: () => this.#open.delete(controller) };
  }

  /** Ends those that the owner's lists refuse now; all of them when there is no owner any more. */
  async review(owner: EgressOwner | undefined): Promise<void> {
    for (const [controller, { host, port, address }] of this.#open) {
      const refusal = owner === undefined ? '' : refusalByPolicy({ host, port }, owner.policy, address);
      if (refusal === null) continue;
      controller.abort();
      await owner?.record({ host, port, purpose: owner.purpose, address: null, refusal });
    }
  }

  endAll(): void {
    for (const controller of this.#open.keys()) controller.abort();
  }
}
