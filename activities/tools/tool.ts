import type { Transaction } from 'sequelize';
import type { EgressGuard } from '../../integrations/egress/guard.ts';
import type { NewPicture, ResultPicture } from '../../models/chat/resultPictures.ts';
import type { ControlOfCall, TargetOfCall } from '../../models/chat/toolCall.ts';
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
  /** Tells the model what the tool does and when to use it. */
  description: string;
  inputSchema: InputSchema;
  /** Read-only tools are offered in mode `ask` too. */
  access: 'read' | 'act';
  /** The lowest role in the space that may use the tool. */
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
   * Whether the input may refer to secrets that a person typed into a form, by `{"$secret": …}`. That person must then
   * approve the call. All other tools refuse such an input, since a model chooses where their input is stored, shown or
   * sent.
   */
  takesSecrets?: boolean;
  /**
   * Finds a call's target. Atrium asks when it records the call and again when it runs it. If the target has changed,
   * the call does not run. A tool needs this if its calls are approved and a name in them can come to mean another
   * object. Throws a DomainError if there is no target.
   */
  targetOf?(input: never, turn: Turn): TargetOfCall | Promise<TargetOfCall>;
  timeoutMs: number;
  /**
   * Whether to run again after a crash. `again`: a repeated run is harmless, since the tool only reads, or records its
   * effect with {@link ToolContext.record}. `never`: the effect may already have happened, and the model is told so.
   */
  afterCrash: 'again' | 'never';
  /**
   * `input` contains the secrets themselves. The result, or a thrown DomainError, is redacted and shown to the model.
   * The run must end soon after the signal is aborted.
   */
  run(input: never, context: ToolContext): Promise<unknown>;
  /**
   * Ends the processes that a call left running, for a turn that ended before the call did. It may be called more than
   * once, and for a call that ended by itself.
   */
  abandon?(call: AbandonedCall): Promise<void>;
}

/** A call whose turn has ended. `target` is the identity that it was recorded with; empty without `targetOf`. */
export type AbandonedCall = Pick<ToolContext, 'turn' | 'toolCallId' | 'target'>;

/** A tool that the client, or the person in front of it, answers with `toolResults`. */
export interface ClientTool extends ToolBase {
  runs: 'client';
  /** Whether the turn's client declared the tool. */
  isDeclared?: true;
  /** The time for an answer, after which the model is told of a timeout. */
  deadlineMs: number;
}

/** Thrown by a tool that must not run twice when a failure came before any effect: the call may then be repeated. */
export class NothingDone extends Error {
  constructor(cause: unknown) {
    super('Nothing was done.', { cause });
  }
}

/** Runs the preparations of such a tool. If they fail, nothing was done. */
export async function beforehand<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new NothingDone(error);
  }
}

export type Tool = ServerTool | ClientTool;

/** Whether the turn's client declared the tool, and runs it. */
export function isOfClient(tool: Tool): tool is ClientTool {
  return tool.runs === 'client' && tool.isDeclared === true;
}

/** The area that a tool's name begins with: `git` of `git_status`. */
export function areaOf(name: string): string {
  return name.split('_', 1)[0] ?? name;
}

export interface ToolContext {
  turn: Turn;
  toolCallId: string;
  /** The identity that the tool's `targetOf` found. The run must act on nothing else. Empty without `targetOf`. */
  target: string;
  /** An earlier run of this call has begun, and its effect may have happened. */
  isRepeated: boolean;
  /** Aborted when the turn stops, the call times out, or the worker stops. */
  signal: AbortSignal;
  /**
   * Whether the abort is final: the turn stops or the call timed out. If only the worker stops, another worker repeats
   * the call.
   */
  isGivenUp(): boolean;
  live: LiveOutput;
  /** Await this before reading a result of more than 4 MB into memory: a worker holds only a few of them at a time. */
  admitLarge(): Promise<void>;
  /**
   * Stores a picture as a file of the thread. The tool puts the returned value into the field `picture` of its result,
   * and models that see images are shown it. A call has one picture; the text beside it must be short.
   */
  keepPicture(picture: NewPicture): Promise<ResultPicture>;
  /** Records in the turn's timeline whether the call controlled the screen that it typed on. */
  noteControl(control: ControlOfCall): Promise<void>;
  /**
   * Records the result in the transaction that has the effect, so that both happen exactly once, even after a crash.
   * Throws if the call is done or has ended: the transaction must then roll back.
   */
  record(tx: Transaction, result: unknown): Promise<void>;
}

/** Shows a running call's output in the turn's stream. */
export interface LiveOutput {
  /**
   * How much of the output earlier runs of this call have shown: the `position` of the last piece, 0 before the first.
   */
  shownUntil(): Promise<number>;
  /**
   * Neither waits nor fails; output that cannot be shown is in the result. `position` is where the next piece begins.
   */
  show(stream: 'stdout' | 'stderr' | 'pty', text: string, position: number): void;
}

/** Whether a person must approve this call before it runs. */
export function needsApproval({ isDangerous = false, takesSecrets = false }: ServerTool, input: unknown): boolean {
  return isDangerous || (takesSecrets && namesSecrets(input));
}

const secretScope = 'secrets:read';

/** The scope that an API key needs for the effect of this call. */
export function scopesOf({ scope }: Tool, input: unknown): Scope[] {
  return namesSecrets(input) ? [scope, secretScope] : [scope];
}

/** For the model to read. */
export function scopeRefusal(what: string, scope: Scope): string {
  return `${what}: the API key that started this turn lacks the scope "${scope}".`;
}

/** The reason why the tool cannot take this input, for the model: it names a secret, and the tool takes none. */
export function secretRefusal(
  { name, takesSecrets = false }: ServerTool,
  input: unknown,
  turn: Pick<Authority, 'scopes'>,
): string | undefined {
  if (!namesSecrets(input)) return undefined;
  if (takesSecrets)
    return may(turn, secretScope) ? undefined : scopeRefusal(`${name} cannot be given this`, secretScope);
  return `${name} accepts no secrets, so the secret was not read. Only tools of MCP servers for which an owner of the space allows secrets can be given one.`;
}

/** A source of tools for some turns only: a space's servers, a client's own. */
export interface ToolSource {
  toolsFor(turn: Turn): Promise<readonly Tool[]>;
}

/** A server tool with the type of its input, which its schema guarantees. */
export function serverTool<Input>(
  tool: Omit<ServerTool, 'runs' | 'run' | 'targetOf'> & {
    targetOf?(input: Input, turn: Turn): TargetOfCall | Promise<TargetOfCall>;
    run(input: Input, context: ToolContext): Promise<unknown>;
  },
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
