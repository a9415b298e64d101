import fc from 'fast-check';

/** What can happen to the credits of two spaces, in whole credits. */
export type Step =
  | { do: 'grant' | 'topUp'; space: number; credits: number; source: number }
  | { do: 'reserve'; space: number; credits: number; call: number; enforced: boolean }
  | { do: 'settle'; space: number; credits: number; call: number; enforced: boolean }
  | { do: 'release'; space: number; call: number }
  | { do: 'charge'; space: number; credits: number; source: number; enforced: boolean }
  | { do: 'reverse'; space: number; credits: number; source: number; reversal: number; returned: boolean }
  | { do: 'transfer'; space: number; credits: number; source: number };

// Few sources and calls, so that repeats are common.
const space = fc.integer({ min: 0, max: 1 });
const credits = fc.integer({ min: 1, max: 12 });
const source = fc.integer({ min: 0, max: 4 });
const call = fc.integer({ min: 0, max: 3 });
const reversal = fc.integer({ min: 0, max: 1 });
const enforced = fc.boolean();
const returned = fc.boolean();

export const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constantFrom('grant' as const, 'topUp' as const), space, credits, source }),
    fc.record({ do: fc.constant('reserve' as const), space, credits, call, enforced }),
    fc.record({ do: fc.constant('settle' as const), space, credits, call, enforced }),
    fc.record({ do: fc.constant('release' as const), space, call }),
    fc.record({ do: fc.constant('charge' as const), space, credits, source, enforced }),
    fc.record({ do: fc.constant('reverse' as const), space, credits, source, reversal, returned }),
    fc.record({ do: fc.constant('transfer' as const), space, credits, source }),
  ),
  { maxLength: 40 },
);

type Account = 'available' | 'reserved' | 'spent' | 'sent' | 'granted' | 'paid' | 'received' | 'debt' | 'unbilled';

interface Call {
  held: number;
  amount: number;
  status: 'open' | 'settled' | 'released';
}

class SpaceModel {
  readonly balances: Partial<Record<Account, number>> = {};
  readonly calls = new Map<number, Call>();
  readonly payments = new Map<
    number,
    { credits: number; reversals: Map<number, { credits: number; returned: boolean }> }
  >();

  get(account: Account): number {
    return this.balances[account] ?? 0;
  }

  add(account: Account, change: number): void {
    this.balances[account] = this.get(account) + change;
    if (this.balances[account] === 0) delete this.balances[account];
  }

  /** Arriving credits of any kind pay debts first. */
  arrive(credits: number): void {
    const debtPaid = Math.min(credits, this.get('debt'));
    this.add('debt', -debtPaid);
    this.add('available', credits - debtPaid);
  }

  /** Takes credits from the available ones, and books the rest as owed. */
  leave(credits: number, owed: 'debt' | 'unbilled'): void {
    const taken = Math.min(credits, this.get('available'));
    this.add('available', -taken);
    this.add(owed, credits - taken);
  }
}

/** A model of the ledger: a few numbers that say what each step must do to the balances, but not how. */
export class LedgerModel {
  readonly spaces = [new SpaceModel(), new SpaceModel()] as const;
  readonly #done = new Set<string>();

  /** Applies a step, and says whether it is refused (402). */
  apply(step: Step): 'refused' | undefined {
    const own = this.spaces[step.space] as SpaceModel;
    if (step.do === 'reserve') return this.#reserve(own, step);
    if (step.do === 'settle') this.#settle(own, step);
    else if (step.do === 'release') this.#release(own, step.call);
    else if (step.do === 'reverse') this.#reverse(own, step);
    else if (this.#isFirst(`${step.do}:${step.do === 'transfer' ? '' : step.space}:${step.source}`, step, own))
      this.#move(own, step);
    return undefined;
  }

  #isFirst(key: string, step: Step, own: SpaceModel): boolean {
    // A transfer refused for lack of credits has not happened, so the same transfer may happen later.
    if (step.do === 'transfer' && own.get('available') < step.credits) return false;
    if (this.#done.has(key)) return false;
    this.#done.add(key);
    return true;
  }

  #move(own: SpaceModel, step: Extract<Step, { do: 'grant' | 'topUp' | 'charge' | 'transfer' }>): void {
    const { credits: amount } = step;
    if (step.do === 'charge') {
      own.add('spent', amount);
      own.leave(amount, step.enforced ? 'debt' : 'unbilled');
    } else if (step.do === 'transfer') {
      const other = this.spaces[1 - step.space] as SpaceModel;
      own.add('available', -amount);
      own.add('sent', amount);
      other.add('received', amount);
      other.arrive(amount);
    } else {
      own.add(step.do === 'grant' ? 'granted' : 'paid', amount);
      own.arrive(amount);
      if (step.do === 'topUp') own.payments.set(step.source, { credits: amount, reversals: new Map() });
    }
  }

  #reserve(own: SpaceModel, step: Extract<Step, { do: 'reserve' }>): 'refused' | undefined {
    const known = own.calls.get(step.call);
    if (known?.status === 'settled') return undefined;
    const pool = own.get('available') + (known?.held ?? 0);
    if (step.enforced && pool < step.credits) return 'refused';
    const held = Math.min(step.credits, pool);
    own.add('available', (known?.held ?? 0) - held);
    own.add('reserved', held - (known?.held ?? 0));
    own.calls.set(step.call, { held, amount: step.credits, status: 'open' });
    return undefined;
  }

  #settle(own: SpaceModel, step: Extract<Step, { do: 'settle' }>): void {
    const known = own.calls.get(step.call);
    if (known?.status === 'settled') return;
    this.#free(own, known);
    own.add('spent', step.credits);
    own.leave(step.credits, step.enforced ? 'debt' : 'unbilled');
    this.#payDebt(own);
    own.calls.set(step.call, { held: 0, amount: step.credits, status: 'settled' });
  }

  #release(own: SpaceModel, number: number): void {
    const known = own.calls.get(number);
    if (known?.status !== 'open') return;
    this.#free(own, known);
    this.#payDebt(own);
    own.calls.set(number, { ...known, held: 0, status: 'released' });
  }

  #free(own: SpaceModel, known: Call | undefined): void {
    own.add('reserved', -(known?.held ?? 0));
    own.add('available', known?.held ?? 0);
  }

  #payDebt(own: SpaceModel): void {
    const paid = Math.min(own.get('available'), own.get('debt'));
    own.add('available', -paid);
    own.add('debt', -paid);
  }

  /** A space keeps the part of a payment that no refund or dispute takes back. */
  #reverse(own: SpaceModel, step: Extract<Step, { do: 'reverse' }>): void {
    const payment = own.payments.get(step.source);
    if (payment === undefined) return;
    const before = keptOf(payment);
    const known = payment.reversals.get(step.reversal);
    payment.reversals.set(step.reversal, {
      credits: known?.credits ?? step.credits,
      returned: step.returned || known?.returned === true,
    });
    const change = keptOf(payment) - before;
    own.add('paid', change);
    if (change >= 0) own.arrive(change);
    else own.leave(-change, 'debt');
  }
}

function keptOf({
  credits: amount,
  reversals,
}: {
  credits: number;
  reversals: Map<number, { credits: number; returned: boolean }>;
}) {
  const heldBack = [...reversals.values()].reduce((sum, one) => sum + (one.returned ? 0 : one.credits), 0);
  return amount - Math.min(amount, heldBack);
}
