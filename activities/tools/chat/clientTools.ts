import type { Turn } from '../../../models/chat/turn.ts';
import { contextOf } from '../../../models/chat/turnContext.ts';
import type { Database } from '../../../models/database/database.ts';
import { type ClientTool, type InputSchema, objectSchema, type Tool, type ToolSource } from '../tool.ts';

/** The part of a request's client context that affects tools. */
interface ClientContext {
  deviceComputerId?: string;
  openTabs?: unknown[];
  clientTools?: { name: string; description?: string; inputSchema: InputSchema; timeoutSeconds?: number }[];
}

const minuteMs = 60_000;
const weekMs = 7 * 24 * 60 * minuteMs;
/** An online device answers soon; an offline one must not hold up a turn for days. */
const deviceDeadlineMs = 15 * minuteMs;

const path = { type: 'string', minLength: 1, maxLength: 4_096 };
const id = { type: 'string', minLength: 1, maxLength: 200 };
const common = { runs: 'client', role: 'viewer', scope: 'device', deadlineMs: deviceDeadlineMs } as const;

/** Tools on the sender's own computer, which the client runs there. */
const deviceTools: ClientTool[] = [
  {
    ...common,
    name: 'device_read',
    access: 'read',
    description: 'Reads a text file, or lists a folder, on the user’s own computer.',
    inputSchema: objectSchema({ path }, ['path']),
  },
  {
    ...common,
    name: 'device_write',
    access: 'act',
    description: 'Writes a text file on the user’s own computer.',
    inputSchema: objectSchema({ path, content: { type: 'string' } }, ['path', 'content']),
  },
  {
    ...common,
    name: 'device_exec',
    access: 'act',
    description: 'Runs a shell command on the user’s own computer.',
    inputSchema: objectSchema({ command: { type: 'string', minLength: 1 }, cwd: path }, ['command']),
  },
];

/** Tools on the panes and tabs that the sender has open. */
const tabTools: ClientTool[] = [
  {
    ...common,
    name: 'tabs_read',
    access: 'read',
    description: 'Reads the content of a tab that the user has open.',
    inputSchema: objectSchema({ tabId: id }, ['tabId']),
  },
  {
    ...common,
    name: 'tabs_open',
    access: 'act',
    description: 'Opens a tab in a pane of the user’s app.',
    inputSchema: objectSchema({ type: id, target: { type: 'string', maxLength: 4_096 }, paneId: id }, [
      'type',
      'target',
    ]),
  },
  {
    ...common,
    name: 'tabs_activate',
    access: 'act',
    description: 'Brings one of the user’s tabs to the front.',
    inputSchema: objectSchema({ tabId: id }, ['tabId']),
  },
  {
    ...common,
    name: 'tabs_close',
    access: 'act',
    description: 'Closes one of the user’s tabs.',
    inputSchema: objectSchema({ tabId: id }, ['tabId']),
  },
];

/** The tools that clients always run: their inputs are checked like our own tools'. */
export const knownClientTools: readonly ClientTool[] = [...deviceTools, ...tabTools];

/**
 * Tools that depend on the turn's sender: those of their device, of their tabs, and those that their client declared.
 */
export function clientToolSource(database: Pick<Database, 'pool'>): ToolSource {
  return {
    async toolsFor(turn: Turn): Promise<readonly Tool[]> {
      const context: ClientContext = (await contextOf(database, turn)) ?? {};
      return [
        ...(context.deviceComputerId === undefined ? [] : deviceTools),
        ...(context.openTabs === undefined ? [] : tabTools),
        ...(context.clientTools ?? []).map(declaredTool),
      ];
    },
  };
}

/**
 * A client declares its tools with each message, so the mode does not filter them, and their inputs are not checked
 * here.
 */
function declaredTool({
  name,
  description,
  inputSchema,
  timeoutSeconds,
}: NonNullable<ClientContext['clientTools']>[number]): ClientTool {
  return {
    runs: 'client',
    isDeclared: true,
    name,
    description: description ?? '',
    inputSchema,
    access: 'read',
    role: 'viewer',
    scope: 'chat',
    deadlineMs: timeoutSeconds === undefined ? weekMs : timeoutSeconds * 1_000,
  };
}
