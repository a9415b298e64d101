import type { Transaction } from 'sequelize';
import type { EgressGuard } from '../../integrations/egress/guard.ts';
import type { NewPicture, ResultPicture } from '../../models/chat/resultPictures.ts';
import type { ControlOfCall } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { EgressRules } from '../../models/egress/egressRules.ts';
import { type Authority, may } from '../../models/identity/authority.ts';
import type { Scope } from '../../models/identity/scopes.ts';
import type { Role } from '../../models/identity/tables.ts';
import { namesSecrets } from '../../models/secrets/references.ts';

/** A JSON Schema of an object: the input that a model may give a tool. */
export type InputSchema = { type: 'object'; [keyword: string]: unknown };

interface ToolBase {
  /** `<area>_<verb>`, as models call it. */
  name: string;
  /** For the model: what it does, and when to use it. */
  description: string;
  inputSchema: InputSchema;
  /** Read-only tools are there in mode `ask` too. */
  access: 'read' | 'act';
  /** The lowest role in the space that may use it. */
  role: Role;
  /** The scope that an API key needs for its turns to use it. */
  scope: Scope;
}

/** A tool that runs on the server, as an activity. */
export interface ServerTool extends ToolBase {
  runs: 'server';
  /** The user must approve each call first. */
  isDangerous?: boolean;
  /**
   * Its input may refer to what a person has typed into a form, by `{"$secret": …}`; that person must then approve the
   * call. All other tools refuse such an input, and the secret stays sealed: their input is stored, shown or sent where
   * the model chooses.
   */
  takesSecrets?: boolean;
  timeoutMs: number;
  /**
   * Whether to run again after a crash. `again`: harmless, since it only reads, or records its effect with {@link
   * ToolContext.record}. `never`: the effect may already have happened, and the model is told that this is unknown.
   */
  afterCrash: 'again' | 'never';
  /**
   * `input` has secrets in place of their references. What it returns, or throws as a DomainError, is redacted and
   * shown. It must end soon after the signal is aborted.
   */
  run(input: never, context: ToolContext): Promise<unknown>;
  /**
   * Ends what a call has left running somewhere, when its turn ended without it. It may be called for a call that did
   * end by itself, and more than once.
   */
  abandon?(call: { turn: Turn; toolCallId: string; input: unknown }): Promise<void>;
}

/** A tool that the client, or the person in front of it, answers with `toolResults`. */
export interface ClientTool extends ToolBase {
  runs: 'client';
  /** Declared by the client of the turn, and not by us. */
  isDeclared?: true;
  /** How long the answer may take before the model is told of a timeout. */
  deadlineMs: number;
}

/** A tool that must not run twice throws it for what has failed before anything was done: then it may. */
export class NothingDone extends Error {
  constructor(cause: unknown) {
    super('Nothing was done.', { cause });
  }
}

/** What such a tool needs before it does anything. */
export async function beforehand<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new NothingDone(error);
  }
}

export type Tool = ServerTool | ClientTool;

export interface ToolContext {
  turn: Turn;
  toolCallId: string;
  /** An earlier run of this call has begun, and may have done anything of it. */
  isRepeated: boolean;
  /** Aborted when the turn stops, the tool's time is over, or the worker stops. */
  signal: AbortSignal;
  /**
   * Whether nobody will go on with the call once the signal is aborted: its turn stops, or its time is over. When only
   * the worker stops, another one runs it again.
   */
  isGivenUp(): boolean;
  live: LiveOutput;
  /** Await this before reading a result of more than 4 MB into memory: a worker holds only a few of them at a time. */
  admitLarge(): Promise<void>;
  /**
   * Keeps a picture, as a file of the thread. A tool puts what it gets into the field `picture` of its result: models
   * that see images are then shown it. A call has one; the text beside it must be short.
   */
  keepPicture(picture: NewPicture): Promise<ResultPicture>;
  /** Notes in the turn’s timeline whether it was in control of the screen that it typed on. */
  noteControl(control: ControlOfCall): Promise<void>;
  /**
   * Records the result in the transaction that has the effect, so that both happen once, whatever is killed. Throws, so
   * that nothing happens, when the call is already done or has ended.
   */
  record(tx: Transaction, result: unknown): Promise<void>;
}

/** Shows what a call puts out while it runs, in the turn’s stream. */
export interface LiveOutput {
  /** How far the runs of this call have shown it: the `position` of the last piece, 0 before the first. */
  shownUntil(): Promise<number>;
  /** Never waits and never fails: what cannot be shown is in the result. `position` is where the next piece begins. */
  show(stream: 'stdout' | 'stderr' | 'pty', text: string, position: number): void;
}

/** Whether a person must approve this call before it runs. */
export function needsApproval({ isDangerous = false, takesSecrets = false }: ServerTool, input: unknown): boolean {
  return isDangerous || (takesSecrets && namesSecrets(input));
}

const secretScope = 'secrets:read';

/** The scope that an API key needs to do the same as this call. */
export function scopesOf({ scope }: Tool, input: unknown): Scope[] {
  return namesSecrets(input) ? [scope, secretScope] : [scope];
}

/** For the model to read. */
export function scopeRefusal(what: string, scope: Scope): string {
  return `${what}: the API key that asked for this turn lacks the scope "${scope}".`;
}

/** Why the tool cannot be given this input, in words for the model: it names a secret, and the tool takes none. */
export function secretRefusal(
  { name, takesSecrets = false }: ServerTool,
  input: unknown,
  turn: Pick<Authority, 'scopes'>,
): string | undefined {
  if (!namesSecrets(input)) return undefined;
  if (takesSecrets)
    return may(turn, secretScope) ? undefined : scopeRefusal(`${name} cannot be given this`, secretScope);
  return `${name} takes no secrets, so this one was not read. Only tools of MCP servers that an owner of the space lets take secrets can be given one.`;
}

/** A source of tools for some turns only: a space's servers, a client's own. */
export interface ToolSource {
  toolsFor(turn: Turn): Promise<readonly Tool[]>;
}

/** A server tool with the type of its input, which its schema guarantees. */
export function serverTool<Input>(
  tool: Omit<ServerTool, 'runs' | 'run'> & { run(input: Input, context: ToolContext): Promise<unknown> },
): ServerTool {
  return { ...tool, runs: 'server' };
}

/** The schema of an object with these properties and no others. */
export function objectSchema(properties: Record<string, object>, required: readonly string[] = []): InputSchema {
  return { type: 'object', properties, required: [...required], additionalProperties: false };
}

/** The egress rules and their guard, for a tool that makes outgoing requests. */
export interface EgressDeps {
  egressGuard: EgressGuard;
  egressRules: EgressRules;
}
