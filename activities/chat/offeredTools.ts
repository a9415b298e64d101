import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
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

/** Tools as a model is offered them. Nearly all turns are offered the same few lists, which are measured once. */
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
