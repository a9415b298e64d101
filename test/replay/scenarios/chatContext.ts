import { turnWorkflowId } from '../../../temporal/workflowIds.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { fake } from '../../builders/product.ts';
import { startFakePushService } from '../../fakes/pushService.ts';
import { waitFor } from '../../support/waitFor.ts';
import type { Scenario } from './scenario.ts';

/** About 900 tokens. */
const long = (number: number) => `${number}. ${'lorem ipsum '.repeat(300)}`;

async function lastTurn(user: ChatUser, messages: string[]): Promise<string> {
  let last = { turnId: '', threadId: undefined as string | undefined };
  for (const content of messages) last = await user.ask({ content, modelId: 'fake-1', threadId: last.threadId });
  return turnWorkflowId(last.turnId);
}

const named: Scenario = {
  name: 'runChatTurn/named',
  environment: { ATRIUM_TITLE_MODEL: 'auto' },
  async run(_product, user) {
    const { turnId, threadId } = await user.ask({ content: fake({ tokens: ['Yes.'] }), modelId: 'fake-1' });
    await waitFor(
      'the title',
      async () => (await user.get<{ title: string | null }>(`/api/threads/${threadId}`)).title,
    );
    return turnWorkflowId(turnId);
  },
};

const pushed: Scenario = {
  name: 'runChatTurn/pushed',
  environment: { ATRIUM_EGRESS_ALLOW_INTERNAL: '127.0.0.1' },
  async run(_product, user) {
    const service = await startFakePushService();
    const { subscription } = service.device('device');
    service.answer('device', { status: 503 });
    await user.fetch('/api/push/subscriptions', { method: 'POST', body: subscription });
    const stream = await user.send({
      content: fake({ tokens: ['Yes.'], firstTokenDelayMs: 300 }),
      modelId: 'fake-1',
    });
    stream.abort();
    await waitFor('the push', () => service.of('device').length > 0);
    await service.stop();
    return turnWorkflowId(idsOf(stream).turnId);
  },
};

/** Work beside a turn's steps: making room in a long thread, a title, a push. */
export const chatContextScenarios: Scenario[] = [
  {
    name: 'runChatTurn/summarized',
    async run(_product, user) {
      const body = { limits: { maxContextTokens: 2_000 } };
      await user.fetch(`/api/spaces/${user.spaceId}/chat-settings`, { method: 'PUT', body });
      return lastTurn(user, [1, 2, 3].map(long));
    },
  },
  {
    name: 'runChatTurn/tooLongForProvider',
    async run(_product, user) {
      const body = JSON.stringify({ error: { message: 'too long', code: 'context_length_exceeded' } });
      return lastTurn(user, ['First', fake({ status: 400, body })]);
    },
  },
  named,
  pushed,
];
