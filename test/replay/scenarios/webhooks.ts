import { actorWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { startReceiver } from '../../builders/webhookReceiver.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

let receiver: Awaited<ReturnType<typeof startReceiver>>;

async function environment() {
  receiver = await startReceiver();
  return { ATRIUM_EGRESS_ALLOW_INTERNAL: receiver.host, ATRIUM_WEBHOOK_RETRY_SECONDS: '1' };
}

const close = () => receiver.close();

export const webhookScenarios: Scenario[] = [
  { name: 'webhookEndpoint/delivered', environment, run: (_product, user) => deliverOne(user, 204), close },
  { name: 'webhookEndpoint/givenUp', environment, run: (_product, user) => deliverOne(user, 500), close },
];

/** Sends one delivery to an endpoint that answers with `status`, and waits until the delivery has ended. */
async function deliverOne(user: ChatUser, status: number): Promise<string> {
  receiver.answerWith(status);
  const send = async <T>(path: string, body?: object) =>
    (await (await user.fetch(path, { method: 'POST', body })).json()) as T;
  const root = `/api/spaces/${user.spaceId}/webhook-endpoints`;
  const endpoint = await send<{ id: string }>(root, { url: receiver.url });
  const { id } = await send<{ id: string }>(`${root}/${endpoint.id}/ping`);
  await waitFor('the end of the delivery', async () => {
    const now = await user.get<{ status: string }>(`${root}/${endpoint.id}/deliveries/${id}`);
    return now.status !== 'pending';
  });
  return actorWorkflowId('webhookEndpoint', endpoint.id);
}
