import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { Message, type StoredPart } from '../../models/chat/message.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { decodeLines } from '../../models/turnLog/entry.ts';
import { MessageFold } from '../../models/turnLog/foldChunks.ts';
import type { TurnLog } from '../../models/turnLog/turnLog.ts';

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'];
type ToolContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content'];
type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content'];
type ToolPart = Extract<StoredPart, { type: 'dynamic-tool' }>;

const systemPrompt =
  'You are the assistant of a workspace that people and agents share. Answer in the language of the last message. ' +
  'Say so when you do not know something.';

/**
 * The prompt of a turn's next step: the thread up to the turn's own message, then what the turn has said and done so far.
 * Later messages of the thread are queued turns' and are not seen.
 */
export async function buildPrompt(turnLog: TurnLog, turn: Turn, step: number): Promise<LanguageModelV4Prompt> {
  const messages = await Message.page({ threadId: turn.threadId, upToOrdinal: turn.ordinal });
  const prompt: LanguageModelV4Prompt = [{ role: 'system', content: systemPrompt }];
  for (const message of messages) {
    if (message.role === 'user') prompt.push({ role: 'user', content: userContent(message.parts) });
    else prompt.push(...assistantMessages(message.parts));
  }
  if (step > 0) prompt.push(...assistantMessages(await partsSoFar(turnLog, turn.id)));
  return prompt;
}

async function partsSoFar(turnLog: TurnLog, turnId: string): Promise<StoredPart[]> {
  const fold = new MessageFold();
  for (let position = 0; ; ) {
    const segments = await turnLog.read(turnId, position);
    const last = segments.at(-1);
    if (last === undefined) return fold.parts();
    for (const segment of segments) for (const chunk of decodeLines(segment.lines)) fold.add(chunk);
    position = last.lastSeq;
  }
}

function userContent(parts: StoredPart[]): UserContent {
  const content: UserContent = [];
  for (const part of parts) {
    if (part.type === 'text') content.push({ type: 'text', text: part.text });
    if (part.type === 'data-file') content.push({ type: 'text', text: `[Attached file: ${part.data.path}]` });
  }
  return content;
}

/** One assistant message a step, each followed by the results of its tools: the order that every provider asks for. */
function assistantMessages(parts: StoredPart[]): LanguageModelV4Message[] {
  const messages: LanguageModelV4Message[] = [];
  for (const step of splitSteps(parts)) {
    const content: AssistantContent = [];
    const results: ToolContent = [];
    for (const part of step) {
      if (part.type === 'text') content.push({ type: 'text', text: part.text, ...optionsOf(part.providerMetadata) });
      if (part.type === 'reasoning' && part.providerMetadata !== undefined) {
        // Only a provider that signed its reasoning wants it back.
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
        results.push(toolResult(part));
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

function toolResult(part: ToolPart): ToolContent[number] {
  const { toolCallId, toolName } = part;
  if (part.state === 'output-error') {
    const value = part.errorText ?? 'The tool failed.';
    return { type: 'tool-result', toolCallId, toolName, output: { type: 'error-text', value } };
  }
  const value = typeof part.output === 'string' ? part.output : JSON.stringify(part.output ?? null);
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'text', value } };
}

function optionsOf(metadata: unknown): { providerOptions?: SharedV4ProviderOptions } {
  return metadata === undefined ? {} : { providerOptions: metadata as SharedV4ProviderOptions };
}
