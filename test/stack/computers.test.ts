import { join } from 'node:path';
import { describeSandboxPrograms, prepareComputers } from '../../stack/computers.ts';
import { findProgram } from '../../stack/context.ts';
import { createStackContext } from '../support/stackContext.ts';

const isComplete = ['bwrap', 'mkfs.btrfs'].every((name) => findProgram(name, process.env) !== undefined);
const isLinux = process.platform === 'linux';

test('computers get a folder that their users can reach, unless one is set', async () => {
  const { ATRIUM_COMPUTERS_DIR: _, ...environment } = process.env;
  const context = createStackContext({ environment });
  const folder = join(context.servicesDir, 'computers');
  expect(await prepareComputers(context)).toEqual(isLinux ? { ATRIUM_COMPUTERS_DIR: folder } : {});
  const set = createStackContext({ environment: { ...environment, ATRIUM_COMPUTERS_DIR: '/elsewhere' } });
  expect(await prepareComputers(set)).toEqual({});
});

test('what they run on is named, with how it comes', () => {
  const { missing, detail } = describeSandboxPrograms({ environment: process.env });
  if (isComplete) expect({ missing, detail }).toEqual({ missing: false, detail: 'bubblewrap, btrfs-progs' });
  else expect(detail).toMatch(/install/);
});
