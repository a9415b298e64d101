import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeSandboxPrograms, prepareComputers } from '../../stack/computers.ts';
import { findProgram } from '../../stack/context.ts';
import { getGvisor } from '../../stack/gvisor.ts';
import { temporaryFolder } from '../support/folders.ts';
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

test('gVisor is built once on request, and later starts find it', async () => {
  const folder = join(temporaryFolder(), 'bin');
  mkdirSync(folder);
  const go = '#!/bin/sh\necho "$@" > "$GOBIN/runsc"; chmod 755 "$GOBIN/runsc"\n';
  writeFileSync(join(folder, 'go'), go, { mode: 0o755 });
  const environment = { PATH: `${folder}:/usr/bin:/bin`, ATRIUM_COMPUTERS_DIR: '/elsewhere' };
  const context = createStackContext({ environment });
  expect(await prepareComputers(context)).toEqual({});
  const built = await getGvisor(context);
  expect(readFileSync(built, 'utf8')).toMatch(/^install .*gvisor\.dev\/gvisor\/runsc@v0\.0\.0-/);
  rmSync(join(folder, 'go'));
  expect(await getGvisor(context)).toBe(built);
  expect(await prepareComputers(context)).toEqual(isLinux ? { ATRIUM_COMPUTERS_RUNSC: built } : {});
  const told = createStackContext({ ...context, environment: { ...environment, ATRIUM_COMPUTERS_RUNSC: '/my/runsc' } });
  expect(await prepareComputers(told)).toEqual({});
});

test('the sandbox programs are listed if present, or else how to install them', () => {
  const { missing, detail } = describeSandboxPrograms({ environment: process.env });
  if (isComplete)
    expect({ missing, detail }).toEqual({ missing: false, detail: 'bubblewrap, btrfs-progs, mmdebstrap' });
  else expect(detail).toMatch(/install/);
});
