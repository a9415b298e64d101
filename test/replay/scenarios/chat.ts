import { turnWorkflowId } from '../../../temporal/workflowIds.ts';
import { idsOf } from '../../builders/chat.ts';
import { fake } from '../../builders/product.ts';
import { untilChunk } from '../../support/sseClient.ts';
import type { Scenario } from './scenario.ts';

/** Asks, waits for the turn's end, and gives its workflow. */
function asked(name: string, content: string, rest: Partial<Scenario> & { modelId?: string } = {}): Scenario {
  const { modelId = 'fake-1', ...others } = rest;
  return {
    name: `runChatTurn/${name}`,
    async run(_product, user) {
      const { turnId } = await user.ask({ content, modelId });
      await user.ended(turnId);
      return turnWorkflowId(turnId);
    },
    ...others,
  };
}

export const chatScenarios: Scenario[] = [
  asked('answered', fake({ tokens: ['Yes.'] })),
  asked('providerRefuses', '/fail 429', { modelId: 'demo' }),
  asked('fallback', fake({ status: 500 }), { environment: { ATRIUM_COMPATIBLE_MODELS: 'fake-1,fake-2' } }),
  asked('unknownTools', '/tool nothing_here {}\n/tool nor_here {}', { modelId: 'demo' }),
  {
    name: 'runChatTurn/stopped',
    async run(_product, user) {
      const stream = await user.send({ content: fake({ tokens: 500, intervalMs: 20 }), modelId: 'fake-1' });
      const { turnId } = idsOf(stream);
      await untilChunk(stream, ({ type }) => type === 'text-delta');
      await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
      await user.ended(turnId);
      return turnWorkflowId(turnId);
    },
  },
  {
    name: 'runChatTurn/workerKilled',
    environment: { ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' },
    async run(product, user) {
      const stream = await user.send({ content: fake({ tokens: 200, intervalMs: 10 }), modelId: 'fake-1' });
      const { turnId } = idsOf(stream);
      await untilChunk(stream, ({ type }) => type === 'text-delta');
      await product.process.kill('SIGKILL');
      await product.restart();
      await user.ended(turnId);
      return turnWorkflowId(turnId);
    },
  },
];
