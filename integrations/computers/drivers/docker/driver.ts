import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCgroups } from '../../host/confinement/cgroupRoots.ts';
import { ifThere } from '../../system/ifThere.ts';
import { environment, home, writeEtc } from '../bubblewrap/view.ts';
import type { Driver, DriverSetting, OpenedDriver, RefusedDriver, SandboxOrder } from '../driver.ts';
import { computerLabel, containerName, dockerConfinement, hostLabel } from './confinement.ts';
import { containerConfig } from './container.ts';
import { Engine, EngineError, parseEngineAddress } from './engine.ts';
import { tryContainer } from './tryContainer.ts';

export interface DockerOptions {
  /** The engine's address, as in `DOCKER_HOST`. The usual socket, if undefined. */
  address?: string | undefined;
  image?: string | undefined;
}

const usualImage = 'atrium-computer';
const usualSocket = '/var/run/docker.sock';
const pingMs = 5_000;

/** Finds the engine and its image, or says what is missing. */
export async function findDocker({
  address,
  image = usualImage,
}: DockerOptions): Promise<{ engine: Engine; image: string } | Omit<RefusedDriver, 'name'>> {
  if (address === undefined && !existsSync(usualSocket)) {
    return { refused: `there is no Docker engine (${usualSocket}); set ATRIUM_COMPUTERS_DOCKER` };
  }
  const parsed = parseEngineAddress(address ?? `unix://${usualSocket}`);
  if (parsed === undefined) return { refused: `computers cannot use a Docker engine at ${address}` };
  const engine = new Engine(parsed);
  try {
    await engine.ask('GET', `/images/${encodeURIComponent(image)}/json`, undefined, { timeoutMs: pingMs });
    return { engine, image };
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) {
      return { refused: `the Docker engine has no image ${image}; build it (docs/computers.md)` };
    }
    const said = error instanceof Error ? error.message : String(error);
    return { refused: `the Docker engine cannot be used (${said})`, isAway: true };
  }
}

/**
 * Opens the driver for a Docker engine on this machine. If the host is not Linux, containers run on the engine's Linux.
 */
export async function openDocker(setting: DriverSetting, options: DockerOptions): Promise<OpenedDriver> {
  const name = 'docker';
  const found = await findDocker(options);
  if ('refused' in found) return { name, ...found };
  const machine = process.arch;
  if (machine !== 'x64' && machine !== 'arm64') return { name, refused: `there is no filter for ${machine}` };
  const { engine, image } = found;
  const { hostId, agentDir, agent, confinement } = setting;
  const create = async ({ record, computerDir, homeDir, limits, readOnly }: SandboxOrder): Promise<string> => {
    const uid = record.uid ?? ownUid();
    const etcDir = join(computerDir, 'etc');
    await writeEtc(etcDir, uid);
    const labels = { [hostLabel]: hostId, [computerLabel]: record.computerId };
    const common = { image, machine, labels, uid, homeDir, etcDir, agentDir } as const;
    const config = containerConfig({ ...common, limits, readOnly, command: agent });
    const path = `/containers/create?name=${containerName(hostId, record.computerId)}`;
    const { Id } = await engine.ask<{ Id: string }>('POST', path, config);
    return Id;
  };
  const trial = {
    image,
    machine,
    labels: { [hostLabel]: hostId, [computerLabel]: 'trial' },
    agentDir,
  } as const;
  const { runtimeDir, firstUid: owner } = setting;
  const refused = await tryContainer(engine, trial, { hostId, runtimeDir, uid: owner ?? ownUid(), owner });
  if (refused !== undefined) return { name, refused };
  return {
    name,
    confinement: dockerConfinement({ engine, hostId }, confinement),
    async sandbox(order) {
      const containerId = await create(order);
      return { kind: 'container', engine: engine.address, containerId, home, env: environment };
    },
    async beforeRelease({ computerId }) {
      const path = `/containers/${containerName(hostId, computerId)}`;
      await engine.ask('POST', `${path}/start`);
      const { Id, State } = await engine.ask<{ Id: string; State: { Pid: number } }>('GET', `${path}/json`);
      const workOom = oomFileOf({ id: Id, pid: State.Pid });
      return workOom === undefined ? {} : { workOom };
    },
  } satisfies Driver;
}

/** On a host other than Linux, the engine is another machine, whose files belong to the user who looks at them. */
function ownUid(): number {
  return process.platform === 'linux' ? (process.getuid?.() ?? 1000) : 1000;
}

/**
 * Finds the file in which the kernel counts a container's OOM kills. Undefined if the engine runs on another machine,
 * whose pids mean nothing here.
 */
function oomFileOf({ id, pid }: { id: string; pid: number }): string | undefined {
  const list = ifThere(() => readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
  const found = findCgroups(readFileSync('/proc/self/mountinfo', 'utf8'), '.');
  if (list === undefined || 'missing' in found) return undefined;
  const { version, memory } = found.roots;
  const lines = list.split('\n').map((line) => line.split(':'));
  const own = lines.find(([, controllers = '']) => controllers.split(',').includes(version === 2 ? '' : 'memory'));
  const path = own?.slice(2).join(':') ?? '';
  const file = join(memory, path, version === 2 ? 'memory.events' : 'memory.oom_control');
  return path.includes(id) && existsSync(file) ? file : undefined;
}
