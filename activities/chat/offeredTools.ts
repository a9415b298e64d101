import type { LanguageModelV4FunctionTool, LanguageModelV4ToolChoice } from '@ai-sdk/provider';
import type { CallSettings, ModelCall } from '../../integrations/chat/modelCall.ts';
import type { CompletionRequest } from '../../models/chat/turnContext.ts';
import { functionTools } from '../tools/registry.ts';
import type { Tool } from '../tools/tool.ts';
import { tokensOfText } from './context/budget.ts';

export interface OfferedTools {
  tools: LanguageModelV4FunctionTool[];
  /** About how many tokens of a prompt they take. */
  tokens: number;
}

const mostKept = 8;
const kept: { of: readonly Tool[]; offered: OfferedTools }[] = [];

/**
 * The tools in the form in which a model is offered them. Nearly all turns offer the same few lists, so their sizes are
 * cached.
 */
export function offeredTools(byName: ReadonlyMap<string, Tool>): OfferedTools {
  const of = [...byName.values()];
  const at = kept.findIndex((one) => one.of.length === of.length && one.of.every((tool, index) => tool === of[index]));
  const [known] = at < 0 ? [] : kept.splice(at, 1);
  const latest = known ?? { of, offered: measured(byName) };
  kept.unshift(latest);
  if (kept.length > mostKept) kept.pop();
  return latest.offered;
}

function measured(byName: ReadonlyMap<string, Tool>): OfferedTools {
  const tools = functionTools(byName);
  return { tools, tokens: tokensOfText(JSON.stringify(tools)) };
}

/** The further settings of the turn's model calls. */
export function settingsOf({ toolChoice, settings }: CompletionRequest, step: number): Partial<ModelCall> {
  const choice = step === 0 ? choiceOf(toolChoice) : undefined;
  return { ...(settings && { settings: settings as CallSettings }), ...(choice && { toolChoice: choice }) };
}

function choiceOf(choice: CompletionRequest['toolChoice']): LanguageModelV4ToolChoice | undefined {
  if (choice === 'required') return { type: 'required' };
  return typeof choice === 'object' ? { type: 'tool', toolName: choice.name } : undefined;
}
