import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DriveDaemon } from '../../../integrations/computers/drives/daemon.ts';
import { createHost } from '../../../integrations/computers/host/createHost.ts';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { drivePrograms, missingDrive } from '../../builders/driveInComputers.ts';
import { agentProgram, driveDaemonProgram } from '../../support/computerPrograms.ts';

// The life of the program that mounts drives. test/api/computers/drive.test.ts tests what it does.

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atrium-drives-'));
  chmodSync(dir, 0o755);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function daemonOf(program: string): DriveDaemon {
  const { runs, driveControl, driveBackend, driveCache, driveStage, driveLog } = hostLayout(dir);
  mkdirSync(runs, { recursive: true });
  const sockets = { controlSocket: driveControl, backendSocket: driveBackend };
  const folders = { cacheDir: driveCache, stageDir: driveStage, log: driveLog };
  return new DriveDaemon({ program, cacheBytes: 1e6, ...sockets, ...folders });
}

test('One that runs is taken over, and one of another release without mounts is replaced', async () => {
  const program = await driveDaemonProgram();
  const old = join(dir, 'atrium-drivefs-old');
  copyFileSync(program, old);
  const first = await daemonOf(old).ensure();
  expect((await daemonOf(old).ensure()).pid).toBe(first.pid);
  const second = await daemonOf(program).ensure();
  expect(second.pid).not.toBe(first.pid);
  expect(drivePrograms(dir)).toEqual([second.pid]);
  await daemonOf(program).end(second);
  expect(await daemonOf(program).state()).toBeUndefined();
  expect(drivePrograms(dir)).toEqual([]);
});

if (missingDrive === undefined) {
  test('It ends with its host, if no computer has a drive', async () => {
    const drive = { program: await driveDaemonProgram(), cacheBytes: 1e6 };
    const host = await createHost({ dir, agent: await agentProgram(), drive, without: ['image'] });
    await host.close();
    expect(drivePrograms(dir)).toEqual([]);
    await (await createHost({ dir, agent: await agentProgram(), drive, without: ['image'] })).shutdown();
    expect(drivePrograms(dir)).toEqual([]);
  });
}
