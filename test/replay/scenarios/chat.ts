import { turnWorkflowId } from '../../../temporal/workflowIds.ts';
import { type ChatUser, idsOf, type TurnBody } from '../../builders/chat.ts';
import { fake } from '../../builders/product.ts';
import { untilChunk } from '../../support/sseClient.ts';
import type { Scenario } from './scenario.ts';

/** Asks, waits for the turn's end, and returns its workflow. */
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

const question = '/tool ask_user {"question":"?"}';

/** A turn that waits for its client until `goOn` answers. */
function waiting(name: string, content: string, goOn: (user: ChatUser, turn: TurnBody) => Promise<unknown>): Scenario {
  return {
    name: `runChatTurn/${name}`,
    async run(_product, user) {
      const { turnId } = await user.ask({ content, modelId: 'demo', mode: 'work' });
      await goOn(user, await user.turn(turnId));
      await user.ended(turnId);
      return turnWorkflowId(turnId);
    },
  };
}

const answer = (user: ChatUser, toolUseId: string | undefined) =>
  user.ask({ toolResults: [{ toolUseId, content: 'yes' }] });
const decide = (user: ChatUser, { id }: TurnBody, toolCallId: string | undefined, approved: boolean) =>
  user.fetch(`/chat/turns/${id}/approvals/${toolCallId}`, { method: 'POST', body: { approved } });

/** A turn with two questions, of which the second has its own history. */
const goingOn: Omit<Scenario, 'name'> = {
  environment: { ATRIUM_MAX_HISTORY_EVENTS: '10' },
  async run(_product, user) {
    const { turnId } = await user.ask({ content: `${question}\n/say and\n${question}`, modelId: 'demo' });
    for (let asked = 0; asked < 2; asked++) {
      const { pendingToolCalls } = await user.turn(turnId);
      await answer(user, pendingToolCalls[0]?.toolCallId);
    }
    await user.ended(turnId);
    return turnWorkflowId(turnId);
  },
};

const soonSilent = { environment: { ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' } };

export const chatScenarios: Scenario[] = [
  asked('answered', fake({ tokens: ['Yes.'] })),
  // The first call takes longer than a worker may be silent.
  asked('answeredLater', fake({ tokens: 100, intervalMs: 25 }), soonSilent),
  // The first call takes longer than the local activity waits, so an activity takes it over.
  asked('handedOver', fake({ tokens: 260, intervalMs: 25 }), soonSilent),
  asked('toolsAtOnce', '/tool drive_list {}', { modelId: 'demo' }),
  asked('providerRefuses', '/fail 429', { modelId: 'demo' }),
  asked('failed', fake({ status: 400 })),
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
  asked('tools', '/tool drive_list {}\n/tool drive_list {}\n/say and\n/tool drive_search {"query":"x"}', {
    modelId: 'demo',
  }),
  asked('stepLimit', '/tool drive_list {}\n/say and\n/tool drive_list {}', {
    modelId: 'demo',
    environment: { ATRIUM_MAX_STEPS_PER_TURN: '1' },
  }),
  asked('timeLimit', fake({ tokens: 10_000, intervalMs: 20 }), { environment: { ATRIUM_MAX_SECONDS_PER_TURN: '2' } }),
  { ...goingOn, name: 'runChatTurn/continued', ofFirstRun: true },
  { ...goingOn, name: 'runChatTurn/continuation' },
  waiting('clientTool', question, (user, turn) => answer(user, turn.pendingToolCalls[0]?.toolCallId)),
  waiting('clientAndServerTools', `${question}\n/tool drive_list {}\n${question}`, async (user, turn) => {
    for (const { toolCallId } of turn.pendingToolCalls) await answer(user, toolCallId);
  }),
  waiting('approvals', '/tool drive_delete {"path":"/a"}\n/tool drive_delete {"path":"/b"}', async (user, turn) => {
    const [first, second] = turn.pendingToolCalls;
    await decide(user, turn, first?.toolCallId, true);
    await decide(user, turn, second?.toolCallId, false);
  }),
  {
    name: 'runChatTurn/endsWithClientCalls',
    async run(_product, user) {
      const tools = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }];
      const messages = [{ role: 'user', content: '/tool look_up {}' }];
      const response = await user.fetch('/v1/chat/completions', {
        method: 'POST',
        body: { model: 'demo', messages, tools },
      });
      const turnId = response.headers.get('x-turn-id') ?? '';
      await user.ended(turnId);
      return turnWorkflowId(turnId);
    },
  },
  waiting('stoppedWhileWaiting', question, (user, { id }) => user.fetch(`/chat/turns/${id}/stop`, { method: 'POST' })),
  {
    name: 'runChatTurn/clientToolTimeout',
    async run(_product, user) {
      const tool = { name: 'late', inputSchema: { type: 'object' }, timeoutSeconds: 1 };
      const { turnId } = await user.ask({ content: '/tool late {}', modelId: 'demo', clientTools: [tool] });
      await user.ended(turnId);
      return turnWorkflowId(turnId);
    },
  },
];
