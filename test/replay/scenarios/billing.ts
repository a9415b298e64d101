import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { operationWorkflowId, reconcileScheduleId, settlementWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import type { TestProduct } from '../../builders/product.ts';
import { type FakeStripe, startFakeStripe } from '../../fakes/stripeServer.ts';
import { completedWorkflow, triggerSchedule } from '../histories.ts';
import type { Scenario } from './scenario.ts';

let stripe: FakeStripe;

/** A fake Stripe for this scenario. It ends with the recording process. */
const withStripe = (prepare?: (stripe: FakeStripe) => void) => async () => {
  stripe = await startFakeStripe();
  prepare?.(stripe);
  return { ...stripe.environment, ATRIUM_BILLING_INITIAL_CREDITS_MAX: '100' };
};

export const billingScenarios: Scenario[] = [
  {
    name: 'setUpBilling/ready',
    environment: withStripe(),
    async run(product, user) {
      await post(user, 'setup', { initialCredits: 50 });
      return workflowOf(product, 'setUpBilling');
    },
  },
  {
    name: 'setUpBilling/providerRefuses',
    environment: withStripe((server) => server.failNext(401)),
    async run(product, user) {
      await post(user, 'setup', {});
      return workflowOf(product, 'setUpBilling');
    },
  },
  {
    name: 'topUp/paid',
    async run(_product, user) {
      const { url, operationId } = await buy(user);
      await choose(user, url, 'pay');
      return operationWorkflowId('topUp', operationId);
    },
  },
  {
    // The notification is lost, so the workflow asks by itself.
    name: 'topUp/paidUnheard',
    environment: async () => ({ ...(await withStripe()()), ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: '1' }),
    async run(_product, user) {
      const { operationId } = await buy(user);
      stripe.pay([...stripe.sessions.keys()].at(-1) ?? '');
      return operationWorkflowId('topUp', operationId);
    },
  },
  {
    name: 'topUp/paidOtherAmount',
    environment: async () => ({ ...(await withStripe()()), ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: '1' }),
    async run(_product, user) {
      const { operationId } = await buy(user);
      Object.assign(stripe.pay([...stripe.sessions.keys()].at(-1) ?? ''), { amount_total: 1 });
      return operationWorkflowId('topUp', operationId);
    },
  },
  {
    name: 'topUp/failed',
    async run(_product, user) {
      const { url, operationId } = await buy(user);
      await choose(user, url, 'fail');
      return operationWorkflowId('topUp', operationId);
    },
  },
  {
    name: 'topUp/cancelled',
    async run(_product, user) {
      const { operationId } = await buy(user);
      await user.fetch(`/api/operations/${operationId}/cancel`, { method: 'POST' });
      return operationWorkflowId('topUp', operationId);
    },
  },
  {
    name: 'topUp/providerRefuses',
    environment: withStripe((server) => server.failNext(400)),
    async run(product, user) {
      await post(user, 'top-up', { amount: 10 });
      return workflowOf(product, 'topUp');
    },
  },
  {
    name: 'autoTopUp/charged',
    environment: withStripe(),
    run: (product, user) => chargeAutomatically(product, user),
  },
  {
    name: 'autoTopUp/refused',
    environment: withStripe((server) => {
      server.card = 'declined';
    }),
    run: (product, user) => chargeAutomatically(product, user),
  },
  {
    name: 'settlePayment/alone',
    environment: withStripe(),
    async run({ url }) {
      await stripe.notify(url, 'invoice.created', { id: 'in_1' }, 'evt_alone');
      return settlementWorkflowId(['evt_alone']);
    },
  },
  {
    name: 'settlePayment/together',
    environment: withStripe(),
    async run({ url, environment: { config } }) {
      const notify = (id: string) => stripe.notify(url, 'invoice.created', { id: 'in_1' }, id);
      await notify('evt_first');
      await Promise.all([notify('evt_second'), notify('evt_third')]);
      const ids = [
        settlementWorkflowId(['evt_second', 'evt_third']),
        settlementWorkflowId(['evt_third', 'evt_second']),
      ];
      return completedWorkflow(config, `WorkflowId IN (${ids.map((id) => `'${id}'`).join(', ')})`);
    },
  },
  {
    name: 'settlePayment/left',
    environment: withStripe(),
    async run({ url }) {
      // More failures than Stripe's client retries.
      stripe.failNext(500, 500, 500, 500);
      await stripe.notify(url, 'charge.refunded', { id: 'ch_1', payment_intent: 'pi_1' }, 'evt_left');
      return settlementWorkflowId(['evt_left']);
    },
  },
  {
    name: 'reconcilePayments/nothingNew',
    environment: withStripe(),
    async run({ environment: { config } }) {
      await triggerSchedule(config, reconcileScheduleId(config.installation));
      return completedWorkflow(
        config,
        `TaskQueue = '${mainTaskQueue(config.installation)}' AND WorkflowType = 'reconcilePayments'`,
      );
    },
  },
];

function post(user: ChatUser, path: string, body: object): Promise<Response> {
  return user.fetch(`/api/billing/${user.spaceId}/${path}`, { method: 'POST', body });
}

async function buy(user: ChatUser): Promise<{ url: string; operationId: string }> {
  return (await post(user, 'top-up', { amount: 10 })).json() as Promise<{ url: string; operationId: string }>;
}

async function choose(user: ChatUser, url: string, choice: string): Promise<void> {
  await user.fetch(`${new URL(url).pathname}/${choice}`, { method: 'POST' });
}

async function chargeAutomatically(product: TestProduct, user: ChatUser): Promise<string> {
  await post(user, 'setup', {});
  const body = { enabled: true, threshold: 10, amount: 10, monthlyLimit: 20 };
  await user.fetch(`/api/billing/${user.spaceId}/auto-top-up`, { method: 'PUT', body });
  return workflowOf(product, 'autoTopUp');
}

function workflowOf({ environment: { config } }: TestProduct, type: string): Promise<string> {
  const queue = `TaskQueue = '${mainTaskQueue(config.installation)}'`;
  return completedWorkflow(config, `${queue} AND WorkflowType = '${type}'`);
}
