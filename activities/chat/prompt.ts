import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { DomainError } from '../../base/errors.ts';
import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';
import type { Message, StoredPart } from '../../models/chat/message.ts';
import type { ChatSettings } from '../../models/chat/settings.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { type CompletionRequest, contextOf, readTurnContexts } from '../../models/chat/turnContext.ts';
import type { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import type { Database } from '../../models/database/database.ts';
import { may } from '../../models/identity/authority.ts';
import type { AttachmentReader } from './context/attachmentReader.ts';
import { tokensOf } from './context/budget.ts';
import { type History, readHistory } from './context/history.ts';
import { ResultPictures } from './context/resultPictures.ts';
import { shortenResults } from './context/shortenResults.ts';
import { summaryMessage } from './context/summary.ts';
import { systemPrompt } from './context/systemPrompt.ts';
import { type FileAllowance, fileAllowance, userContent } from './context/userContent.ts';

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'];
type ToolContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content'];
type ToolPart = Extract<StoredPart, { type: 'dynamic-tool' }>;

export interface PromptDeps {
  database: Database;
  turnLog: TurnLog;
  attachments: AttachmentReader;
}

export interface PromptRequest {
  turn: Turn;
  step: number;
  model: CatalogueModel;
  settings: ChatSettings;
  /** In tokens. */
  budget: number;
  /** The text that the step has said already and that the model continues. */
  kept?: string | undefined;
  completion?: CompletionRequest | undefined;
}

/**
 * The share of a prompt that the turn's own message and tools may take; the rest is for the thread before it. The
 * results that a turn of OpenAI's API continues with count as its message.
 */
const ownShare = 0.6;

/**
 * Builds the prompt of a turn's next step: the thread up to the turn's own message, then what the turn has said and
 * done so far. Undefined if that is more than the model accepts: the beginning of the thread must then be summarised.
 * Throws `CONTEXT_TOO_LONG` if the turn's own message alone is too long.
 */
export async function buildPrompt(
  deps: PromptDeps,
  request: PromptRequest,
): Promise<LanguageModelV4Prompt | undefined> {
  const { turn, step, settings, budget, kept, completion } = request;
  const [history, soFar] = await Promise.all([
    readHistory(deps.database, turn, budget),
    step > 0 ? deps.turnLog.folds.of(turn.id).then(({ fold }) => fold.parts()) : [],
  ]);
  if (!history.isWhole) return undefined;
  const done =
    kept === undefined
      ? soFar
      : soFar.slice(
          0,
          soFar.findLastIndex(({ type }) => type === 'step-start'),
        );
  const allowance = fileAllowance(budget);
  const parts = [...history.messages.flatMap((message) => message.parts), ...done];
  const pictures = await ResultPictures.of(deps, request, parts, allowance);
  const thread = await threadMessages(deps, request, history, allowance, pictures);
  const own = shortenResults([...thread.splice(-1), ...assistantMessages(done, pictures)], budget * ownShare);
  // Providers refuse an answer that ends with a space.
  if (kept !== undefined) own.push({ role: 'assistant', content: [{ type: 'text', text: kept.trimEnd() }] });
  const opening: LanguageModelV4Prompt = [{ role: 'system', content: systemPrompt(turn, settings, completion) }];
  if (history.summary !== null) opening.push(summaryMessage(history.summary.summary));
  if (tokensOf(opening) + tokensOf(own) > budget) {
    throw new DomainError('unprocessable', 'CONTEXT_TOO_LONG', 'The message is too long for this model.');
  }
  const prompt = [...opening, ...thread, ...own];
  return tokensOf(prompt) <= budget ? prompt : undefined;
}

/**
 * The thread's messages for a model. They are built from the last to the first, so that the newest messages get the
 * most room for their files.
 */
async function threadMessages(
  deps: PromptDeps,
  { turn, model }: PromptRequest,
  { messages }: History,
  allowance: FileAllowance,
  pictures: ResultPictures,
): Promise<LanguageModelV4Message[]> {
  const contexts = await contextsOf(deps.database, turn, messages);
  const made: LanguageModelV4Message[][] = [];
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') {
      made.push(assistantMessages(message.parts, pictures));
      continue;
    }
    const { attachments, database } = deps;
    const content = await userContent(
      { attachments, database, model, spaceId: turn.spaceId, mayReadDrive: may(turn, 'drive:read'), allowance },
      message,
      contexts.get(message.turnId),
    );
    made.push([{ role: 'user', content }]);
  }
  return made.reverse().flat();
}

/** The device contexts that clients sent with these messages, by turn. */
async function contextsOf(database: Database, turn: Turn, messages: readonly Message[]) {
  const asked = messages.filter(({ role }) => role === 'user').map(({ turnId }) => turnId);
  const [own, contexts] = await Promise.all([
    contextOf(database, turn),
    readTurnContexts(
      database,
      asked.filter((id) => id !== turn.id),
    ),
  ]);
  return own === undefined ? contexts : contexts.set(turn.id, own);
}

/** One assistant message per step, each followed by its tool results: the order that every provider requires. */
function assistantMessages(parts: StoredPart[], pictures: ResultPictures): LanguageModelV4Message[] {
  const messages: LanguageModelV4Message[] = [];
  for (const step of splitSteps(parts)) {
    const content: AssistantContent = [];
    const results: ToolContent = [];
    for (const part of step) {
      if (part.type === 'text') content.push({ type: 'text', text: part.text, ...optionsOf(part.providerMetadata) });
      if (part.type === 'reasoning' && part.providerMetadata !== undefined) {
        // Only a provider that signs its reasoning accepts it in a prompt.
        content.push({ type: 'reasoning', text: part.text, ...optionsOf(part.providerMetadata) });
      }
      if (part.type === 'dynamic-tool' && part.state.startsWith('output')) {
        content.push({
          type: 'tool-call',
          toolCallId: part.toolCallId,
          toolName: part.toolName,
          input: part.input ?? {},
          ...optionsOf(part.callProviderMetadata),
        });
        results.push(toolResult(part, pictures));
      }
    }
    if (content.length > 0) messages.push({ role: 'assistant', content });
    if (results.length > 0) messages.push({ role: 'tool', content: results });
  }
  return messages;
}

function splitSteps(parts: StoredPart[]): StoredPart[][] {
  const steps: StoredPart[][] = [[]];
  for (const part of parts) {
    if (part.type === 'step-start') steps.push([]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

function toolResult(part: ToolPart, pictures: ResultPictures): ToolContent[number] {
  const { toolCallId, toolName } = part;
  if (part.state === 'output-error') {
    const value = part.errorText ?? 'The tool failed.';
    return { type: 'tool-result', toolCallId, toolName, output: { type: 'error-text', value } };
  }
  const value = typeof part.output === 'string' ? part.output : JSON.stringify(part.output ?? null);
  return { type: 'tool-result', toolCallId, toolName, output: pictures.outputOf(part, value) };
}

function optionsOf(metadata: unknown): { providerOptions?: SharedV4ProviderOptions } {
  return metadata === undefined ? {} : { providerOptions: metadata as SharedV4ProviderOptions };
}
