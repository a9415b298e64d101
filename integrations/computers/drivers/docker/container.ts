import { agentTasks } from '../../host/confinement/computerCgroup.ts';
import { agentFolder } from '../../protocol/holderSpec.ts';
import { environment, home, ownEtc, temporaryFolders } from '../bubblewrap/view.ts';
import type { SandboxOptions } from '../driver.ts';
import { ociFilter } from '../seccomp/oci.ts';

export interface ContainerOptions extends SandboxOptions {
  image: string;
  /** Labels by which a host finds its containers again. */
  labels: Record<string, string>;
  /** The owner of the home, as the engine sees it. */
  uid: number;
}

const mebibyte = 1_048_576;
/** Docker's list of masked paths, which `MaskedPaths` replaces. All of /sys is masked too. */
const masked = ['asound', 'acpi', 'kcore', 'keys', 'latency_stats', 'timer_list', 'timer_stats', 'sched_debug', 'scsi'];
const readOnlyProc = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'];
/** Memory for the agent itself, besides the computer's programs. */
const agentMemoryMiB = 128;

/**
 * The engine's request for a container. The agent is its main process. It has no network: traffic leaves through the
 * agent.
 */
export function containerConfig(options: ContainerOptions) {
  const { image, machine, labels, uid, limits, command } = options;
  const memory = (limits.memoryMiB + agentMemoryMiB) * mebibyte;
  const shm = temporaryFolders(limits).find(({ path }) => path === '/dev/shm');
  const others = temporaryFolders(limits).filter(({ path }) => path !== '/dev/shm');
  const ulimit = (Name: string, most: number) => ({ Name, Soft: most, Hard: most });
  return {
    Image: image,
    Entrypoint: command,
    Cmd: [],
    User: `${uid}:${uid}`,
    WorkingDir: home,
    Hostname: 'computer',
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    Labels: labels,
    Tty: false,
    OpenStdin: true,
    // When its holder is killed, the agent reads the end of its input and ends.
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      NetworkMode: 'none',
      IpcMode: 'private',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', `seccomp=${JSON.stringify(ociFilter(machine))}`],
      MaskedPaths: [...masked.map((name) => `/proc/${name}`), '/sys'],
      ReadonlyPaths: readOnlyProc.map((name) => `/proc/${name}`),
      Sysctls: { 'net.ipv4.ip_unprivileged_port_start': '0' },
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: limits.cpuMilli * 1_000_000,
      PidsLimit: limits.maxTasks + agentTasks(limits),
      Ulimits: [ulimit('nofile', 8_192), ulimit('core', 0)],
      ShmSize: shm?.bytes,
      Tmpfs: Object.fromEntries(
        others.map(({ path, mode, bytes }) => [
          path,
          `rw,nosuid,nodev,exec,uid=${uid},gid=${uid},mode=${mode},size=${bytes}`,
        ]),
      ),
      Mounts: mountsOf(options),
      // An init process reaps orphans.
      Init: true,
      LogConfig: { Type: 'none' },
      RestartPolicy: { Name: 'no' },
    },
  };
}

function mountsOf({ homeDir, etcDir, agentDir, readOnly }: ContainerOptions) {
  const bind = (Source: string, Target: string, ReadOnly: boolean) => ({ Type: 'bind', Source, Target, ReadOnly });
  return [
    bind(homeDir, home, false),
    bind(agentDir, agentFolder, true),
    ...ownEtc.map((name) => bind(`${etcDir}/${name}`, `/etc/${name}`, true)),
    ...readOnly.map(({ from, to }) => bind(from, to, true)),
  ];
}
