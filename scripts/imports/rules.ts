/**
 * Which folders may import each other (CONTRIBUTING.md has the principle). A folder's entry lists the folders or single
 * files that it may use at run time, and those whose types it may use. Everything else is forbidden. areas.ts has the
 * rules within a folder.
 */
export interface Rule {
  may: string[];
  typesOf?: string[];
  /** The packages that it may import. Undefined means all. */
  packages?: string[];
  why: string;
}

export const rules: Record<string, Rule> = {
  base: { may: [], why: 'it is the ground floor: errors, ids and text of the domain, which every layer uses' },
  config: { may: [], why: 'everything else depends on it' },
  disk: { may: [], packages: ['node:fs', 'node:fs/promises'], why: 'it is a primitive, which runs in sandboxes too' },
  crypto: { may: ['base', 'config', 'disk'], why: 'it is a primitive' },
  telemetry: { may: [], why: 'everything else may log' },
  models: {
    may: ['base', 'crypto', 'telemetry'],
    typesOf: ['config'],
    why: 'the truth in MySQL knows nothing of who uses it',
  },
  integrations: {
    may: ['base', 'config', 'disk'],
    typesOf: ['telemetry'],
    why: 'what talks to the outside knows nothing of the product',
  },
  workflows: {
    may: [],
    typesOf: ['activities', 'models'],
    packages: ['@temporalio/workflow'],
    why: 'workflows only decide, and must give the same decisions again on replay',
  },
  activities: {
    may: ['base', 'models', 'integrations', 'telemetry', 'temporal/workflowIds.ts'],
    typesOf: ['workflows', 'temporal', 'config'],
    why: 'an activity is called by workflows, never by a request',
  },
  temporal: {
    // Operations and callers outside of them read failures of git the same way.
    may: ['workflows', 'activities', 'integrations/git/rules/failures.ts'],
    typesOf: ['base', 'models', 'config', 'telemetry'],
    why: 'it joins workflows and activities, and is used by the API',
  },
  api: {
    // A timeline names its workflow.
    may: [
      'base',
      'models',
      'integrations',
      'temporal/operations/index.ts',
      'temporal/workflowIds.ts',
      'config',
      'telemetry',
    ],
    typesOf: ['temporal'],
    why: 'a route writes an intent and starts a workflow; the work is done by activities',
  },
  stack: {
    may: ['temporal/searchAttributes.ts', 'disk'],
    typesOf: ['config'],
    why: 'it runs the parts, and knows nothing of the product',
  },
  backup: {
    // The wanted state of a space's database on its server.
    may: ['base', 'models', 'integrations', 'crypto', 'disk', 'activities/databases/wanted.ts'],
    typesOf: ['config'],
    why: 'it copies what all parts hold, beside a running Atrium or without one',
  },
  client: {
    may: [],
    typesOf: ['api/generated/types.gen.ts'], // its package contains a copy
    packages: ['openapi-fetch', 'eventsource-parser/stream', 'node:readline/promises'], // its example uses a terminal
    why: 'it is a package for other programs',
  },
  bin: {
    may: [
      'base',
      'api',
      'activities',
      'temporal',
      'models',
      'integrations',
      'backup',
      'stack',
      'config',
      'crypto',
      'telemetry',
    ],
    why: 'it joins the parts to a program',
  },
};

/** Statements that may appear only in one place. */
export const confined: { pattern: RegExp; only: (path: string) => boolean; message: string }[] = [
  {
    pattern: /\bprocess\.env\b/,
    only: (path) => path.startsWith('config/'),
    message: 'reads process.env; add a setting to config/index.ts',
  },
  {
    pattern: /\bworkflow\s*\.\s*(start|execute|signalWithStart|startUpdateWithStart|executeUpdateWithStart)\s*\(/,
    only: (path) => path === 'temporal/launcherKit.ts',
    message: 'starts a workflow; add a launcher to temporal/launchers/',
  },
  {
    pattern: /['"`]\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s)/,
    // The rule is for the product's database. Databases of spaces are on another server, and no model knows their
    // contents.
    only: (path) =>
      path.startsWith('integrations/databases/') || !/^(activities|api|temporal|integrations)\//.test(path),
    message: 'has SQL in it; a query is a function of models/',
  },
];
