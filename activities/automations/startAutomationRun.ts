import { DomainError, type DomainErrorKind } from '../../base/errors.ts';
import { estimateTokens } from '../../integrations/chat/tokens.ts';
import type { Automation } from '../../models/automations/automation.ts';
import {
  findStarting,
  type RunMessage,
  refuseRun,
  type StartedRun,
  type Starting,
  startRun,
} from '../../models/automations/startRun.ts';
import { holdForTurn } from '../../models/billing/gate.ts';
import { isFree, pricesOf } from '../../models/billing/prices.ts';
import type { Admit } from '../../models/chat/acceptMessage.ts';
import { attachFiles, needsOf } from '../../models/chat/attachments.ts';
import { chatModels } from '../../models/chat/models.ts';
import { chatSettingsOf } from '../../models/chat/settings.ts';
import { may, standingOf } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { isQuiet } from '../../models/installation/installation.ts';
import type { AutomationDeps } from './deps.ts';
import { tellPaused } from './tellPaused.ts';

/** These failures may pass by themselves, so the run waits. */
const passing: readonly DomainErrorKind[] = ['unavailable', 'upstream', 'upstreamTimeout', 'timeout', 'rateLimited'];

interface Refusal {
  code: string;
  detail: string;
  outcome: 'pauses' | 'fails' | 'skipped';
}

/**
 * Gives a pending run its turn, as if its automation's owner had sent the prompt, or ends the run with the reason why
 * not. Safe to repeat: a run has one turn.
 */
export function createStartAutomationRun(deps: AutomationDeps) {
  const { database, workflows } = deps;
  return async function startAutomationRun({ runId }: { runId: string }): Promise<void> {
    // Once the installation is resumed, the sweeper starts the run.
    if (await isQuiet(database)) return;
    const starting = await findStarting(database, runId);
    if (starting === undefined) return;
    const started = await begin(deps, starting, runId);
    if (started.turn?.status === 'running') await workflows.startTurn(started.turn);
    if (started.interrupted !== undefined) await workflows.stopTurn(started.interrupted);
    if (started.paused === undefined) return;
    await workflows.scheduleAutomation({ ...started.paused, when: null });
    await tellPaused(deps, started.paused);
  };
}

async function begin(
  deps: AutomationDeps,
  { automation, payloadLength }: Starting,
  runId: string,
): Promise<StartedRun> {
  const where = { automationId: automation.id, runId };
  const refused = await unauthorized(deps, automation);
  if (refused !== undefined) return refuseRun(deps.database, where, refused);
  try {
    const message = await messageOf(deps, automation);
    return await startRun(deps.database, where, message, gateOf(deps, automation, message, payloadLength));
  } catch (error) {
    if (!(error instanceof DomainError) || passing.includes(error.kind)) throw error;
    return refuseRun(deps.database, where, refusalOf(error));
  }
}

/** Why the owner may no longer run the automation. Runs stop when their author loses the authority. */
async function unauthorized(deps: AutomationDeps, automation: Automation): Promise<Refusal | undefined> {
  const { mode, threadId, userId, files } = automation;
  const [{ role, keyHolds }, thread] = await Promise.all([
    standingOf(deps.identity, automation),
    chatModels(deps.database).Thread.open(threadId),
  ]);
  const pauses = (code: string, detail: string): Refusal => ({ code, detail, outcome: 'pauses' });
  if (role === undefined) {
    return pauses('AUTHOR_LEFT', 'The author of the automation is no longer a member of the space.');
  }
  if (!keyHolds) return pauses('KEY_REVOKED', 'The API key that the automation was created with is no longer valid.');
  if (!isAtLeast(role, mode === 'work' ? 'editor' : 'viewer')) {
    return pauses('ROLE_TOO_LOW', 'The author of the automation may no longer change things in the space.');
  }
  if (!may(automation, 'chat') || (files.length > 0 && !may(automation, 'drive:read'))) {
    return pauses(
      'SCOPE_MISSING',
      'The API key that the automation was created with lacks a scope that the automation needs.',
    );
  }
  if (thread === null || thread.userId !== userId) {
    return pauses('THREAD_DELETED', 'The thread of the automation is deleted. Set another thread.');
  }
  return undefined;
}

async function messageOf({ database, catalogue }: AutomationDeps, automation: Automation): Promise<RunMessage> {
  const { spaceId, userId, mode, prompt, effort } = automation;
  const [files, settings] = await Promise.all([
    attachFiles(database, { spaceId, userId }, automation.files),
    chatSettingsOf(database, spaceId),
  ]);
  const { defaultModelId } = settings;
  const known = defaultModelId !== null && catalogue.find(defaultModelId) !== undefined ? defaultModelId : undefined;
  const chosen = catalogue.resolve({
    modelId: automation.modelId ?? known,
    effort,
    needs: { mode, tools: mode === 'work', ...needsOf(files), inputTokens: estimateTokens(prompt.length) },
  });
  return { modelId: chosen.model.id, effort: chosen.effort ?? null, files };
}

/** Holds credits for the first model call, as any message does. */
function gateOf(
  { config, catalogue }: AutomationDeps,
  automation: Automation,
  message: RunMessage,
  payloadLength: number,
): Admit | undefined {
  const model = catalogue.find(message.modelId);
  const prices = pricesOf(model?.pricingRates ?? []);
  if (model === undefined || isFree(prices)) return undefined;
  const { contextWindowTokens, maxOutputTokens } = model.capabilities;
  const { spaceId, userId, mode: kind, prompt } = automation;
  return (tx, turn) =>
    holdForTurn(tx, {
      ...{ turn, spaceId, userId, modelId: model.id, kind, prices, maxOutputTokens, contextWindowTokens },
      messageTokens: estimateTokens(prompt.length + payloadLength),
      enforced: config.billing.enforced,
    });
}

function refusalOf({ code, message: detail, kind }: DomainError): Refusal {
  return { code, detail, outcome: code === 'QUEUE_FULL' || kind === 'gone' ? 'skipped' : 'fails' };
}
