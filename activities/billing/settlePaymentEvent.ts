import { keepAlive } from '../keepAlive.ts';
import type { BillingDeps } from './deps.ts';
import { settleEvent } from './settlement.ts';

/** Settlements of different spaces run in parallel. Those of one space wait for its balance. */
const lanes = 4;
/** Leaves the rest after this time, since the activity itself may take only a minute. */
const longestMs = 30_000;

/** Activities that apply stored notifications and tell the purchases' workflows. */
export function createSettlements(deps: BillingDeps) {
  async function settle(eventId: string): Promise<string> {
    const { outcome, checkout } = await settleEvent(deps, eventId);
    if (outcome === 'unexplained')
      deps.logger.warn({ eventId }, 'A payment notification cannot be explained; `billing check` says why.');
    if (checkout !== undefined) await deps.workflows.checkoutChanged(checkout);
    return outcome;
  }

  return {
    async settlePaymentEvent({ eventId }: { eventId: string }): Promise<string> {
      using _heartbeat = keepAlive();
      return await settle(eventId);
    },

    /** Settles notifications that came together. Returns those that could not be settled now. */
    async settlePaymentEvents({ eventIds }: { eventIds: string[] }): Promise<string[]> {
      const begunMs = performance.now();
      const waiting = [...eventIds];
      const left: string[] = [];
      const lane = async () => {
        for (let eventId = waiting.shift(); eventId !== undefined; eventId = waiting.shift()) {
          if (performance.now() - begunMs > longestMs) {
            left.push(eventId);
            continue;
          }
          try {
            await settle(eventId);
          } catch (error) {
            deps.logger.warn({ err: error, eventId }, 'A payment could not be settled; it is retried automatically.');
            left.push(eventId);
          }
        }
      };
      await Promise.all(Array.from({ length: lanes }, lane));
      return left;
    },
  };
}
