import type { Request } from 'express';
import type { CallSettings } from '../../integrations/chat/modelCall.ts';
import type { TurnMode } from '../../models/chat/turn.ts';
import type { CompletionRequest } from '../../models/chat/turnContext.ts';
import type { BodyOf } from '../frame/request.ts';
import type { CompletionBody, Conversation } from './conversation.ts';
import { isHelperCall } from './helperCalls.ts';
import { refused } from './refusals.ts';

type ClientTools = BodyOf<'streamChat'>['clientTools'];

/** The client's functions, as chat's client tools. */
export function clientToolsOf({ tools }: CompletionBody): ClientTools {
  if (!tools?.length) return undefined;
  return tools.map((tool, index) => {
    if (tool.type !== 'function' || tool.function === undefined) {
      throw refused('TOOL_UNSUPPORTED', `/tools/${index}/type`, 'Only tools of the type function are supported here.');
    }
    const { name, description, parameters } = tool.function;
    const inputSchema = { properties: {}, ...parameters, type: 'object' as const };
    return { name, ...(description != null && { description }), inputSchema };
  });
}

/** The request's options for the turn, beside messages and tools. */
export function completionRequestOf(
  body: CompletionBody,
  { instructions, ownToolsOnly }: { instructions: string | undefined; ownToolsOnly: boolean },
): CompletionRequest {
  const maxOutputTokens = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  const toolChoice = toolChoiceOf(body);
  const settings = settingsOf(body);
  return {
    ...(instructions !== undefined && { instructions }),
    ...(ownToolsOnly && { ownToolsOnly }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(Object.keys(settings).length > 0 && { settings: { ...settings } }),
  };
}

function toolChoiceOf({ tool_choice: choice, tools }: CompletionBody): CompletionRequest['toolChoice'] {
  if (choice == null || choice === 'auto') return undefined;
  if (choice === 'none') return choice;
  const names = (tools ?? []).map((tool) => tool.function?.name);
  if (names.length === 0) {
    throw refused('TOOL_CHOICE_INVALID', '/tool_choice', 'The request has no tools to choose from.');
  }
  if (choice === 'required') return choice;
  const { name } = choice.function;
  if (!names.includes(name)) {
    throw refused('TOOL_CHOICE_INVALID', '/tool_choice/function/name', 'None of the tools has this name.');
  }
  return { name };
}

function settingsOf(body: CompletionBody): CallSettings {
  const { temperature, top_p: topP, presence_penalty, frequency_penalty, seed, stop, response_format: format } = body;
  const { name, description, schema } = format?.json_schema ?? {};
  const json = {
    ...(schema !== undefined && { schema }),
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
  };
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(presence_penalty != null && { presencePenalty: presence_penalty }),
    ...(frequency_penalty != null && { frequencyPenalty: frequency_penalty }),
    ...(seed != null && { seed }),
    ...(stop != null && stop.length > 0 && { stopSequences: typeof stop === 'string' ? [stop] : stop }),
    ...(format != null && format.type !== 'text' && { json }),
    ...(body.parallel_tool_calls != null && { parallelToolCalls: body.parallel_tool_calls }),
  };
}

/** Where a completion belongs and what it may do. */
export interface Place {
  /** A thread's id, or the client's own chat id. */
  thread: string | undefined;
  spaceId: string | undefined;
  mode: TurnMode;
  /** The model is offered no tools of the space. */
  ownToolsOnly: boolean;
  /** Whether a new thread is kept and appears in its owner's list. */
  isKept: boolean;
}

/**
 * Metadata wins over the headers, which the contract has checked. The model is offered the space's tools only if the
 * client asks for them, or for a mode of theirs: programs that bring their own tools are confused by others.
 */
export function readPlace(req: Request, body: CompletionBody, conversation: Conversation): Place {
  const { thread_id, space_id, mode, server_tools } = body.metadata ?? {};
  const isAside = isHelperCall(conversation, body);
  const thread = isAside ? undefined : (thread_id ?? req.get('x-thread-id'));
  const wishedMode = mode ?? (req.get('x-mode') as TurnMode | undefined);
  const wish = server_tools ?? req.get('x-server-tools') ?? (wishedMode === undefined ? 'off' : 'on');
  return {
    thread,
    spaceId: space_id ?? req.get('x-space-id'),
    mode: wishedMode ?? 'ask',
    ownToolsOnly: isAside || wish === 'off',
    isKept: thread !== undefined || (body.store !== false && !isAside),
  };
}
