/**
 * What an API key may be allowed. A session may do everything its user may. A key may do only what its scopes say, and
 * never more than its user's role. Each operation names its scope in the contract (`x-scope`). The contract's schema
 * `Scope` lists the same scopes: a test compares.
 */
export const scopes = {
  '*': 'Everything its user may do.',
  chat: 'Chat: threads, turns, models, and the operations they start. Reads the chat settings of spaces.',
  'settings:write': 'Change what the chats of a space begin with: its system prompt, its default model, their limits.',
  'sharing:write': 'Make and revoke links by which anybody reads a thread.',
  'spaces:read': 'See spaces and their members.',
  'spaces:write': 'Make, change and delete spaces and their members. Includes spaces:read.',
  billing: 'Credits: see balances and the ledger, set up, buy, limit.',
  secrets: 'List the names of secrets, set and delete them, and store what a form has asked for. Reads no value.',
  'secrets:read': 'Read the values of secrets, and let agents give tools what a form has asked for.',
  audit: 'Read the audit log of spaces that its user owns.',
  'drive:read': 'Read the drive: its tree, its files, thread files.',
  'drive:write': 'Change the drive, and put files into it and into threads. Includes drive:read.',
  'computers:read': 'See computers, what runs on them and what it has put out, and read their files.',
  'computers:write':
    'Make, start, stop and delete computers, run programs on them, change their files. Includes computers:read.',
  'git:read': 'See repositories: how they are, their history, branches and changes, and the names of credentials.',
  'git:write':
    'Clone repositories, change and send them, add and remove credentials for git servers. Includes git:read.',
  'apps:read': 'See apps, what of them runs and has run, and what that has put out.',
  'apps:write': 'Make and remove apps, run their components and end those runs. Includes apps:read.',
  'databases:read': 'See databases and how they are.',
  'databases:write':
    'Make, delete and restore databases, and get into them: see and renew passwords. Includes databases:read.',
  tools: 'What agents may use and reach: MCP servers, egress lists and their log.',
  web: 'Let agents fetch pages of the web.',
  mcp: 'Let agents use the tools of the MCP servers of a space.',
  device: 'Let agents use the computer and the open tabs of their user, as far as a client there does it.',
  approvals:
    'Decide about calls and versions of apps that wait for it, as far as its other scopes cover them, and add MCP servers whose calls do not wait.',
  keys: 'List, make and revoke API keys, never with more than its own scopes.',
} as const;

export type Scope = keyof typeof scopes;

export function isScope(value: string): value is Scope {
  return Object.hasOwn(scopes, value);
}

/** Whether `granted` covers `needed`. `x:write` includes `x:read`. */
export function allows(granted: readonly string[], needed: string): boolean {
  if (granted.includes('*') || granted.includes(needed)) return true;
  return needed.endsWith(':read') && granted.includes(needed.replace(/:read$/, ':write'));
}
