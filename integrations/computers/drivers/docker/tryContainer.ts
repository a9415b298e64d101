import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { agentFolder } from '../../protocol/holderSpec.ts';
import { writeEtc } from '../bubblewrap/view.ts';
import { containerName } from './confinement.ts';
import { type ContainerOptions, containerConfig } from './container.ts';
import type { Engine } from './engine.ts';

const limits = { cpuMilli: 1_000, memoryMiB: 256, diskMiB: 64, maxTasks: 64, maxProcesses: 1, maxLogBytes: 0 };
/** Checks that the agent runs and the home is writable. */
const trial = ['/usr/bin/sh', '-c', `: > trial && exec ${agentFolder}/agent < /dev/null`];
const name = 'trial';

type Common = Pick<ContainerOptions, 'image' | 'machine' | 'labels' | 'agentDir'>;

/** Runs a trial container, made like a computer's. Returns undefined if it works, otherwise the reason. */
export async function tryContainer(
  engine: Engine,
  common: Common,
  { hostId, runtimeDir, uid, owner }: { hostId: string; runtimeDir: string; uid: number; owner: number | undefined },
): Promise<string | undefined> {
  const homeDir = mkdtempSync(join(runtimeDir, 'trial-'));
  const path = `/containers/${containerName(hostId, name)}`;
  try {
    if (owner !== undefined) chownSync(homeDir, owner, owner);
    const etcDir = join(runtimeDir, 'trial-etc');
    await writeEtc(etcDir, uid);
    await engine.askUnless([404], 'DELETE', `${path}?force=1`);
    const config = containerConfig({ ...common, uid, homeDir, etcDir, limits, readOnly: [], command: trial });
    await engine.ask('POST', `/containers/create?name=${containerName(hostId, name)}`, config);
    await engine.ask('POST', `${path}/start`);
    const { StatusCode: code } = await engine.ask<{ StatusCode: number }>('POST', `${path}/wait`);
    return code === 0 ? undefined : `a container of ${common.image} cannot use the folder of this host (code ${code})`;
  } catch (error) {
    return `no container of ${common.image} can be made: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    await engine.askUnless([404, 409], 'DELETE', `${path}?force=1&v=1`).catch(() => undefined);
    rmSync(homeDir, { recursive: true, force: true });
  }
}
