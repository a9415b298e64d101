import { type CompletionRequest, offersOwn } from '../../models/chat/turnContext.ts';
import { areaOf, isOfClient, type Tool } from './tool.ts';

/**
 * The tools of a step in a turn of OpenAI's API. The client can only run its own tools, and its `tool_choice` refers to
 * those. A choice that forces a call holds for the first step only, otherwise the turn would never end. The client's
 * tools may have any name: the space's tools of the same area are left out, since a model that is offered two kinds of
 * `browser_…` confuses them. Without `step`, the tools of a later step.
 */
export function toolsOfStep(
  completion: CompletionRequest,
  tools: ReadonlyMap<string, Tool>,
  step: number | undefined,
): Map<string, Tool> {
  const { ownToolsOnly, toolChoice } = completion;
  const isForced = step === 0 && toolChoice !== undefined && toolChoice !== 'none';
  const taken = new Set([...tools.values()].filter(isOfClient).map(({ name }) => areaOf(name)));
  return new Map(
    [...tools].filter(([name, tool]) => {
      if (isOfClient(tool)) return offersOwn(completion, name, step);
      return tool.runs === 'server' && ownToolsOnly !== true && !isForced && !taken.has(areaOf(name));
    }),
  );
}
