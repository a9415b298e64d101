/**
 * Which areas may import each other within a layer. An area may use itself, the layer's `common` folders and loose
 * files, and the areas that `named` lists for it, with the reason. Common folders may use no area. Only `joins` may use
 * every area.
 */
export interface Layer {
  /** Folders that every area may use. */
  common?: string[];
  /** Loose files that join the areas. No area may use them. */
  joins: string[];
  /** More permissions: for each folder or loose file, what else it may use and why. */
  named?: Record<string, Record<string, string>>;
}

export const layers: Record<string, Layer> = {
  api: {
    common: ['frame', 'generated'],
    joins: ['areas.ts', 'registry.ts'],
    named: {
      frame: { 'registry.ts': 'the app serves what is listed there' },
      drive: { chat: 'the files of a thread are for whoever may read the thread' },
      git: { drive: 'a repository is an item, for whoever may see that' },
      apps: {
        drive: 'an app is an item, for whoever may see that',
        computers: 'the log of a run is the output of a process, and a preview a link to a port',
      },
      automations: { chat: 'they run in threads, for their owners' },
      environments: { computers: 'the log of a build is the output of processes' },
      openai: { chat: 'a completion is a turn of a thread', drive: 'its files are those of the drive' },
    },
  },
  workflows: { joins: ['index.ts'] },
  activities: {
    joins: ['areas.ts', 'main.ts'],
    named: {
      automations: { push: 'they tell their owners that they have paused themselves' },
      billing: {
        chat: 'it meters the model calls of a turn',
        mail: 'it tells owners that few credits are left',
      },
      chat: {
        tools: 'a turn runs tools',
        push: 'the sweeper tells people of turns that it has ended',
      },
    },
  },
  models: {
    common: ['audit', 'database', 'installation', 'links', 'migrations', 'operations', 'sweeping', 'words'],
    joins: ['areas.ts', 'purge.ts'],
    named: {
      migrations: { 'areas.ts': 'an area describes its own tables' },
      chat: {
        drive: 'attachments and large results are files',
        identity: 'a turn has the authority of the credential that asked for it',
        webhooks: 'endpoints are told of turns that end or wait',
      },
      automations: {
        chat: 'their runs are turns',
        identity: 'a run has the authority of who wrote the automation',
        webhooks: 'a webhook of theirs is signed as every other',
      },
      drive: {
        chat: 'the container of a thread is its owner’s',
        git: 'a repository goes with its item',
        apps: 'an app goes with its item',
      },
      git: {
        drive: 'a repository is an item, and its bundles are objects of the drive',
        computers: 'its working tree is on a computer',
        billing: 'a change of a tree takes what only a space with credits may wake',
        apps: 'what a repository is may be an app, which is told of changes',
      },
      apps: {
        drive: 'an app is a folder or a repository of the drive',
        git: 'the files of a repository are in its working tree',
        computers: 'it runs on a computer',
        identity: 'a run has the authority of who asked for it',
        databases: 'an app that is removed gets into no database any more',
        webhooks: 'endpoints are told of runs that end',
      },
      desktops: { computers: 'a session is on a computer, and ends with it' },
      browsers: {
        computers: 'a session is on a computer, and ends with it',
        desktops: 'a session with a window is on a desktop, and ends with that',
        drive: 'a saved profile is an object of the drive, and downloads are its files',
      },
      computers: {
        drive: 'the pieces of a saved home are objects of the drive',
        secrets: 'a placeholder stands for a secret of the space',
        billing: 'a running computer costs by the minute',
        environments: 'a computer begins with a version of an environment',
      },
      environments: {
        computers: 'a version is built on a computer, and is the save of one',
        drive: 'a build copies files of the drive',
      },
      databases: { drive: 'a backup is an object of the drive' },
      secrets: { databases: 'the passwords of databases are masked like secrets' },
      identity: {
        mail: 'links to sign in go by mail',
        computers: 'every space has a computer from the beginning',
        environments: 'a space stays while other spaces need its environments',
      },
    },
  },
};

/** The rule of its own layer that an import breaks. Undefined if it breaks none. */
export function faultWithinLayer(path: string, target: string): string | undefined {
  const { layer, from, to, rule } = partsOf(path, target);
  if (rule === undefined || from === to || rule.joins.includes(from)) return undefined;
  const isCommon = rule.common?.includes(to) || (isFile(to) && !rule.joins.includes(to));
  if (isCommon || rule.named?.[from]?.[to] !== undefined) return undefined;
  return `imports ${target}: ${layer}/${from} may not use ${to} (scripts/imports/areas.ts says who may)`;
}

/** The named permission that this import uses, such as `api: drive → chat`. */
export function permissionUsed(path: string, target: string): string | undefined {
  const { layer, from, to, rule } = partsOf(path, target);
  return rule?.named?.[from]?.[to] === undefined ? undefined : `${layer}: ${from} → ${to}`;
}

export function namedPermissions(): string[] {
  return Object.entries(layers).flatMap(([layer, { named = {} }]) =>
    Object.entries(named).flatMap(([from, tos]) => Object.keys(tos).map((to) => `${layer}: ${from} → ${to}`)),
  );
}

function partsOf(path: string, target: string) {
  const [layer = '', from = ''] = path.split('/');
  const [otherLayer, to = ''] = target.split('/');
  return { layer, from, to, rule: layer === otherLayer ? layers[layer] : undefined };
}

function isFile(part: string): boolean {
  return part.endsWith('.ts');
}
