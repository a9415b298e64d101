import { checkImports, readSources, unusedPermissions } from '../../scripts/imports/check.ts';

const check = (path: string, source: string) => checkImports(new Map([[path, source]]));

test('The project keeps its own import rules', () => {
  expect(checkImports(readSources('.'))).toEqual([]);
});

test('the rules have no unused permissions', () => {
  const sources = readSources('.');
  expect(unusedPermissions(sources)).toEqual([]);
  const without = (folder: string) => new Map([...sources].filter(([path]) => !path.startsWith(folder)));
  // Without the only file that uses a permission, the permission is unused.
  expect(unusedPermissions(without('stack/temporal'))).toEqual(['stack may use temporal/searchAttributes.ts']);
  expect(unusedPermissions(without('api/drive/authorizeDrive'))).toEqual(['api: drive → chat']);
});

test.each([
  ['api/chat/routes.ts', `import { callModel } from '../../activities/chat/callModel.ts';`, 'api/ may not'],
  ['models/turn.ts', `import { launchTurn } from '../temporal/launcher.ts';`, 'models/ may not'],
  ['models/turn.ts', `export * from '../api/errors.ts';`, 'models/ may not'],
  ['integrations/chat/a.ts', `import type { Turn } from '../../models/turn.ts';`, 'integrations/ may not'],
  [
    'workflows/chat/runChatTurn.ts',
    `import {\n  callModel,\n} from '../../activities/chat/callModel.ts';`,
    'types only',
  ],
  ['workflows/chat/runChatTurn.ts', `import { type A } from '../../activities/main.ts';`, 'types only'],
  ['workflows/chat/runChatTurn.ts', `import fs from 'node:fs';`, 'package node:fs'],
  ['api/secrets/routes.ts', `import { x } from '../chat/authorizeThread.ts';`, 'api/secrets may not use chat'],
  ['api/chat/routes.ts', `import type { x } from '../drive/lookup.ts';`, 'api/chat may not use drive'],
  ['api/frame/request.ts', `import { x } from '../chat/presentThread.ts';`, 'api/frame may not use chat'],
  ['api/chat/routes.ts', `import { areas } from '../areas.ts';`, 'api/chat may not use areas.ts'],
  ['base/ids.ts', `import { Thread } from '../models/chat/thread.ts';`, 'base/ may not'],
  ['models/database/pages.ts', `import { Thread } from '../chat/thread.ts';`, 'models/database may not use chat'],
  ['activities/drive/a.ts', `import { sweeps } from '../main.ts';`, 'activities/drive may not use main.ts'],
  ['activities/chat/a.ts', `await import('../../api/frame/app.ts');`, 'activities/ may not'],
])('In %s, %s is reported', (path, source, message) => {
  expect(check(path, source)).toEqual([expect.stringContaining(message)]);
});

test.each([
  ['api/chat/routes.ts', `import type { Launcher } from '../../temporal/launcher.ts';`],
  ['workflows/chat/runChatTurn.ts', `import type { Activities } from '../../activities/main.ts';`],
  ['api/drive/authorizeDrive.ts', `import { authorizeThread } from '../chat/authorizeThread.ts';`],
  ['api/secrets/routes.ts', `import { time } from '../frame/times.ts';`],
  ['api/areas.ts', `import { chat } from './chat/index.ts';`],
  ['models/chat/thread.ts', `import { newId } from '../ids.ts';`],
  ['integrations/chat/a.ts', `import type { DomainError } from '../../base/errors.ts';`],
  [
    'models/turn.ts',
    `/** Not import { x } from '../api/app.ts'; */\n// import '../api/app.ts';\nimport { z } from 'zod';`,
  ],
])('in %s, %s is allowed', (path, source) => {
  expect(check(path, source)).toEqual([]);
});

test('Only config/ may read the environment', () => {
  expect(check('api/frame/app.ts', 'const port = process.env.PORT;')).toEqual([
    expect.stringContaining('config/index.ts'),
  ]);
  expect(check('config/index.ts', 'const port = process.env.PORT;')).toEqual([]);
});

test('Only temporal/launcherKit.ts may start workflows', () => {
  const start = '\n\nawait client.workflow.start(runChatTurn, {});';
  expect(check('api/frame/app.ts', start)).toEqual([
    'api/frame/app.ts:3 starts a workflow; add a launcher to temporal/launchers/',
  ]);
  expect(check('temporal/launcherKit.ts', start)).toEqual([]);
});

test('A circle of imports is reported once', () => {
  const sources = new Map([
    ['models/a.ts', `import { b } from './b.ts';`],
    ['models/b.ts', `export * from './d.ts';`],
    ['models/c.ts', `import type { A } from './a.ts';`],
    ['models/d.ts', `import './a.ts';\nimport { c } from './c.ts';`],
    ['test/own.ts', `import { own } from './own.ts';`],
  ]);
  expect(checkImports(sources)).toEqual([
    'models/a.ts → models/b.ts → models/d.ts → models/a.ts import each other in a circle',
    'test/own.ts → test/own.ts import each other in a circle',
  ]);
});

test('Only models/ may contain SQL', () => {
  const statement = 'await database.pool.query(`\n  SELECT id FROM turns`);';
  expect(check('activities/chat/a.ts', statement)).toEqual([
    'activities/chat/a.ts:1 has SQL in it; a query is a function of models/',
  ]);
  expect(check('models/chat/a.ts', statement)).toEqual([]);
});
