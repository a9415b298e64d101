import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { join, relative } from 'node:path';

/** The folders with code of the API and the worker. No others, since data may lie beside them. */
export const codeFolders = [
  'activities',
  'api',
  'backup',
  'base',
  'bin',
  'config',
  'crypto',
  'disk',
  'integrations',
  'models',
  'stack',
  'telemetry',
  'temporal',
  'workflows',
];
/** What the code consists of. Editors write drafts and locks under other names. */
const codeFile = /^[^.].*\.(ts|mts|mjs|js|json|yaml|html|css|svg)$/;
/** A checkout or a save changes several files, one after the other. */
const settleMs = 200;

interface Change {
  /** The first of the changed files. */
  path: string;
}

/**
 * Watches the code below `root`. Watches folders rather than files: a file that is replaced, as git and many editors
 * do, is a new one under the old name, of which a watch on the old file would hear nothing.
 */
export function watchSources(root: string): { nextChange(): Promise<Change>; close(): void } {
  const watchers = new Map<string, FSWatcher>();
  let next = Promise.withResolvers<Change>();
  let settling: { path: string; timer: NodeJS.Timeout } | undefined;

  function note(path: string): void {
    clearTimeout(settling?.timer);
    const first = settling?.path ?? relative(root, path);
    const timer = setTimeout(() => {
      settling = undefined;
      next.resolve({ path: first });
      next = Promise.withResolvers();
    }, settleMs);
    settling = { path: first, timer };
  }

  function add(folder: string): void {
    const entries = foldersIn(folder);
    if (entries === undefined) return;
    if (!watchers.has(folder)) {
      const watcher = watch(folder, (_event, name) => {
        if (name === null) return;
        if (codeFile.test(name)) note(join(folder, name));
        else if (isWatched(name)) addNew(join(folder, name));
      });
      // A folder that was removed is watched again when it is back.
      watcher.on('error', () => forget(folder));
      watchers.set(folder, watcher);
    }
    for (const name of entries) if (isWatched(name)) add(join(folder, name));
  }

  /** A folder that has come, gone, or come back: its files have changed. */
  function addNew(folder: string): void {
    const isThere = foldersIn(folder) !== undefined;
    if (!isThere && !watchers.has(folder)) return;
    forget(folder);
    add(folder);
    note(folder);
  }

  function forget(folder: string): void {
    for (const [path, watcher] of watchers) {
      if (path !== folder && !path.startsWith(`${folder}/`)) continue;
      watcher.close();
      watchers.delete(path);
    }
  }

  for (const name of codeFolders) add(join(root, name));
  return {
    nextChange: () => next.promise,
    close() {
      clearTimeout(settling?.timer);
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

const isWatched = (name: string) => !name.startsWith('.') && name !== 'node_modules';

/** The names of the folders in a folder. Undefined where it is none, or is gone. */
function foldersIn(folder: string): string[] | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return undefined;
  }
}
