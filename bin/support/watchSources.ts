import { once } from 'node:events';
import { relative } from 'node:path';
import { watch } from 'chokidar';
import type { Report } from '../../stack/report.ts';

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
const codeFile = /\.(ts|mts|mjs|js|json|yaml|html|css|svg)$/;
const notCode = /(^|\/)(\.|node_modules(\/|$))/;
/** A checkout or a save changes several files, one after the other. */
const settleMs = 200;

/** Watches the code below `root`. Resolves when all folders are watched. */
export async function watchSources(root: string, report: Report) {
  const watcher = watch(codeFolders, {
    cwd: root,
    ignoreInitial: true,
    ignored: (path, stats) => notCode.test(relative(root, path)) || (stats?.isFile() === true && !codeFile.test(path)),
  });
  let next = Promise.withResolvers<{ path: string }>();
  let settling: { path: string; timer: NodeJS.Timeout } | undefined;
  await once(watcher, 'ready');
  watcher.on('error', (error) => report(`Not every change of the code is noticed: ${error}`));
  watcher.on('all', (_event, path) => {
    clearTimeout(settling?.timer);
    const first = settling?.path ?? path;
    const timer = setTimeout(() => {
      settling = undefined;
      next.resolve({ path: first });
      next = Promise.withResolvers();
    }, settleMs);
    settling = { path: first, timer };
  });
  return {
    /** Resolves at the next change, with the first of the changed files. */
    nextChange: () => next.promise,
    async close() {
      clearTimeout(settling?.timer);
      await watcher.close();
    },
  };
}
