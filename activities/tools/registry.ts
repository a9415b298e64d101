import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import type { Turn } from '../../models/chat/turn.ts';
import type { CompletionRequest } from '../../models/chat/turnContext.ts';
import { may, type Standing } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { type AbandonedCall, isOfClient, scopeRefusal, type Tool, type ToolSource } from './tool.ts';
import { toolsOfStep } from './toolsOfStep.ts';

/** Reads the user's current role and whether their key is still valid. */
export type StandingOf = (turn: Turn) => Promise<Standing>;

/** Reads the options of the turn's OpenAI API request; undefined for other turns. */
export type CompletionOf = (turn: Turn) => Promise<CompletionRequest | undefined>;

/** A tool that this turn may use, or the reason why it may not, for the model. */
export type Found = { tool: Tool } | { refused: string };

const shownFaults = 5;

/**
 * All tools, and the rules that decide which of them a turn may use: its mode, the scopes of its key, its user's current
 * role, and what a request of OpenAI's API asks for. A model may call a tool that it was not offered, so the same rules
 * decide what a call may run.
 */
export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #checked: ReadonlySet<Tool>;
  readonly #validators = new Map<Tool, ValidateFunction>();
  readonly #sources: readonly ToolSource[];
  readonly #standingOf: StandingOf;
  readonly #completionOf: CompletionOf;

  /** `checked`: tools of sources whose inputs are validated like those of `tools`. */
  constructor(options: {
    tools: readonly Tool[];
    checked?: readonly Tool[];
    sources?: readonly ToolSource[];
    standingOf: StandingOf;
    completionOf: CompletionOf;
  }) {
    this.#tools = byName(options.tools);
    this.#sources = options.sources ?? [];
    this.#standingOf = options.standingOf;
    this.#completionOf = options.completionOf;
    this.#checked = new Set([...options.tools, ...(options.checked ?? [])]);
  }

  /** The tools that this step's model call is offered, by name. Without `step`, those of a later step. */
  async offered(turn: Turn, step?: number): Promise<Map<string, Tool>> {
    const { ofStep, standing } = await this.#toolsFor(turn, step);
    return new Map([...ofStep].filter(([, tool]) => refusalOf(tool, turn, standing) === undefined));
  }

  /** The tool with this name, if a call that this step made may use it. */
  async find(turn: Turn, step: number, name: string): Promise<Found> {
    const { all, ofStep, standing } = await this.#toolsFor(turn, step);
    const tool = all.get(name);
    if (tool === undefined) return { refused: `There is no tool named ${name}.` };
    if (!ofStep.has(name)) return { refused: `${name} cannot be used in this answer: it was not offered.` };
    const refused = refusalOf(tool, turn, standing);
    return refused === undefined ? { tool } : { refused };
  }

  /** The faults of an input, in words for the model; undefined if there are none. Fills in defaults. */
  faultsOf(tool: Tool, input: unknown): string | undefined {
    const validate = this.#validatorOf(tool);
    if (validate === undefined || validate(input)) return undefined;
    const faults = (validate.errors ?? []).slice(0, shownFaults).map(({ instancePath, message, params }) => {
      const extra = (params as { additionalProperty?: string }).additionalProperty;
      return `${instancePath || 'it'} ${message ?? 'is wrong'}${extra === undefined ? '' : ` ("${extra}")`}`;
    });
    return `The input of the tool is not valid: ${faults.join('; ')}.`;
  }

  /** Ends the processes that a call left running, if its tool can. */
  async abandon(name: string, call: AbandonedCall): Promise<void> {
    const tool = this.#tools.get(name);
    if (tool?.runs === 'server') await tool.abandon?.(call);
  }

  /** Compiles all input schemas, and throws if one is wrong. Otherwise each is compiled at its tool's first call. */
  compileAll(): void {
    for (const tool of this.#checked) this.#validatorOf(tool);
  }

  #validatorOf(tool: Tool): ValidateFunction | undefined {
    if (!this.#checked.has(tool)) return undefined;
    const validate = this.#validators.get(tool) ?? ajv().compile(tool.inputSchema);
    this.#validators.set(tool, validate);
    return validate;
  }

  async #toolsFor(turn: Turn, step: number | undefined) {
    const [all, standing, completion] = await Promise.all([
      this.#allFor(turn),
      this.#standingOf(turn),
      this.#completionOf(turn),
    ]);
    return { all, standing, ofStep: completion === undefined ? all : toolsOfStep(completion, all, step) };
  }

  async #allFor(turn: Turn): Promise<Map<string, Tool>> {
    const further = await Promise.all(this.#sources.map((source) => source.toolsFor(turn)));
    const others = further.flat();
    // Our own tools come after those of other servers, which can take none of their names. A client's own tools come
    // last: in a client of OpenAI's API they may have any name, and the client must get their calls.
    return new Map([...byName(others), ...this.#tools, ...byName(others.filter(isOfClient))]);
  }
}

let compiler: Ajv2020.default | undefined;

/** All registries share one compiler, since creating it compiles JSON Schema's own schemas. */
function ajv(): Ajv2020.default {
  compiler ??= new Ajv2020.default({ allErrors: true, useDefaults: true, strict: true, allowUnionTypes: true });
  return compiler;
}

/** Tools as a model sees them. */
export function functionTools(tools: ReadonlyMap<string, Tool>): LanguageModelV4FunctionTool[] {
  return [...tools.values()].map(({ name, description, inputSchema }) => ({
    type: 'function',
    name,
    description,
    inputSchema: inputSchema as LanguageModelV4FunctionTool['inputSchema'],
  }));
}

function refusalOf(tool: Tool, turn: Turn, { role, keyHolds }: Standing): string | undefined {
  if (turn.mode === 'ask' && tool.access === 'act') {
    return `${tool.name} changes things, but this turn is in ask mode and may only read.`;
  }
  if (role === undefined || !isAtLeast(role, tool.role)) return `The user may not use ${tool.name} in this space.`;
  if (!keyHolds) return `${tool.name} cannot be used: the API key that started this turn is no longer valid.`;
  if (!may(turn, tool.scope)) return scopeRefusal(`${tool.name} cannot be used`, tool.scope);
  return undefined;
}

function byName(tools: readonly Tool[]): Map<string, Tool> {
  return new Map(tools.map((tool) => [tool.name, tool]));
}
