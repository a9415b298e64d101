import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from './errors.ts';
import { integer, list } from './kinds.ts';

const driver = z.enum(['bubblewrap', 'gvisor', 'docker']);
const cores = 'a number of cores from 0.1 to 64';
const cpu = z.coerce.number(cores).min(0.1, cores).max(64, cores);
const factor = 'a number from 1 to 100';
const memory = integer(128, 1_048_576);
const disk = integer(64, 16_777_216);
const idle = integer(1, 10_080);

export const computerSettings = z.object({
  ATRIUM_COMPUTERS: z.enum(['auto', 'off']).default('auto'),
  ATRIUM_COMPUTER_DRIVER: driver.default('bubblewrap'),
  ATRIUM_COMPUTERS_DRIVERS: list.pipe(z.array(driver)).optional(),
  ATRIUM_COMPUTERS_RUNSC: z.string().min(1).optional(),
  ATRIUM_COMPUTERS_DOCKER: z
    .url({ protocol: /^(unix|tcp|http)$/, error: 'an address like unix:///var/run/docker.sock or tcp://host:port' })
    .max(255)
    .optional(),
  ATRIUM_COMPUTERS_DOCKER_IMAGE: z.string().min(1).max(255).optional(),
  DOCKER_HOST: z.string().optional(),
  ATRIUM_COMPUTERS_DIR: z.string().min(1).optional(),
  ATRIUM_COMPUTERS_HOST: z.string().min(1).default('127.0.0.1'),
  ATRIUM_COMPUTERS_PORT: integer(0, 65_535).default(0),
  ATRIUM_COMPUTERS_URL: z
    .url({ protocol: /^https?$/ })
    .max(255)
    .optional(),
  ATRIUM_COMPUTERS_IMAGE_MIB: integer(256, 1_000_000_000).optional(),
  ATRIUM_COMPUTERS_MEMORY_MIB: integer(256, 1_000_000_000).optional(),
  ATRIUM_COMPUTERS_OVERCOMMIT: z.coerce.number(factor).min(1, factor).max(100, factor).default(4),
  ATRIUM_COMPUTER_CPU: cpu.default(1),
  ATRIUM_COMPUTER_CPU_MAX: cpu.default(4),
  ATRIUM_COMPUTER_MEMORY_MIB: memory.default(2_048),
  ATRIUM_COMPUTER_MEMORY_MIB_MAX: memory.default(8_192),
  ATRIUM_COMPUTER_DISK_MIB: disk.default(10_240),
  ATRIUM_COMPUTER_DISK_MIB_MAX: disk.default(51_200),
  ATRIUM_COMPUTER_IDLE_MINUTES: idle.default(15),
  ATRIUM_COMPUTER_IDLE_MINUTES_MAX: idle.default(1_440),
  ATRIUM_COMPUTER_PAUSED_HOURS: integer(1, 8_760).default(24),
  ATRIUM_COMPUTER_MAX_TASKS: integer(16, 100_000).default(1_024),
  ATRIUM_COMPUTER_MAX_PROCESSES: integer(1, 1_000).default(64),
  ATRIUM_COMPUTER_LOG_MIB: integer(1, 10_240).default(64),
  ATRIUM_COMPUTERS_PER_SPACE: integer(1, 10_000).default(20),
  ATRIUM_COMPUTER_SNAPSHOTS_PER_SPACE: integer(1, 100_000).default(100),
  ATRIUM_COMPUTERS_RUNNING_PER_SPACE: integer(1, 10_000).default(5),
  ATRIUM_COMPUTERS_MEMORY_PER_SPACE_MIB: integer(128, 1_000_000_000).optional(),
  ATRIUM_COMPUTERS_DISK_PER_SPACE_MIB: integer(64, 1_000_000_000_000).optional(),
  ATRIUM_COMPUTERS_PER_HOST: integer(1, 10_000).default(100),
  ATRIUM_COMPUTER_TRANSITION_SECONDS: integer(1, 600).default(60),
  ATRIUM_COMPUTER_HOST_BEAT_SECONDS: integer(1, 300).default(5),
  ATRIUM_COMPUTER_SAVE_SECONDS: integer(0, 86_400).default(10),
  ATRIUM_COMPUTERS_FAILOVER: z.enum(['on', 'off']).default('on'),
  ATRIUM_COMPUTERS_LABELS: list.optional(),
  ATRIUM_COMPUTERS_DRIVE: z.enum(['auto', 'off']).default('auto'),
  ATRIUM_COMPUTERS_DRIVE_CACHE_MIB: integer(64, 1_000_000_000).default(4_096),
});

type ComputerEnvironment = z.infer<typeof computerSettings> & { ATRIUM_DATA_DIR: string };

const mebibyte = 1_048_576;
/** A host that misses this many heartbeats counts as lost. */
const beatsToLoss = 6;

type DriverEnvironment = Pick<
  ComputerEnvironment,
  | 'ATRIUM_COMPUTERS_DRIVERS'
  | 'ATRIUM_COMPUTERS_RUNSC'
  | 'ATRIUM_COMPUTERS_DOCKER'
  | 'ATRIUM_COMPUTERS_DOCKER_IMAGE'
  | 'DOCKER_HOST'
>;

/** The drivers that a host runs computers with, and where it finds them. Undefined means the machine's default. */
export function driversOf(env: DriverEnvironment) {
  return Object.freeze({
    drivers: env.ATRIUM_COMPUTERS_DRIVERS,
    runsc: env.ATRIUM_COMPUTERS_RUNSC,
    docker: Object.freeze({
      address: env.ATRIUM_COMPUTERS_DOCKER ?? (env.DOCKER_HOST || undefined),
      image: env.ATRIUM_COMPUTERS_DOCKER_IMAGE,
    }),
  });
}

/** Resources, numbers and timeouts of computers. */
export function computersConfig(env: ComputerEnvironment) {
  const computers = Object.freeze({
    /** Whether workers run computers if the machine can. */
    hosted: env.ATRIUM_COMPUTERS === 'auto',
    driver: env.ATRIUM_COMPUTER_DRIVER,
    ...driversOf(env),
    dir: env.ATRIUM_COMPUTERS_DIR ?? join(env.ATRIUM_DATA_DIR, 'computers'),
    /** Where a worker serves its computers to other processes, and the URL that it announces to them. */
    server: Object.freeze({
      host: env.ATRIUM_COMPUTERS_HOST,
      port: env.ATRIUM_COMPUTERS_PORT,
      url: env.ATRIUM_COMPUTERS_URL?.replace(/\/+$/, ''),
    }),
    /** The most of the image that holds the homes. Default: most of the free space. */
    imageMiB: env.ATRIUM_COMPUTERS_IMAGE_MIB,
    /** Memory for all computers of this host together. Default: all but a tenth of the machine's. */
    memoryMiB: env.ATRIUM_COMPUTERS_MEMORY_MIB,
    /** How much memory a host may promise to its running computers, as a multiple of their memory limit together. */
    overcommit: env.ATRIUM_COMPUTERS_OVERCOMMIT,
    defaults: Object.freeze({
      cpuMilli: Math.round(env.ATRIUM_COMPUTER_CPU * 1_000),
      memoryMiB: env.ATRIUM_COMPUTER_MEMORY_MIB,
      diskMiB: env.ATRIUM_COMPUTER_DISK_MIB,
      idleMinutes: env.ATRIUM_COMPUTER_IDLE_MINUTES,
    }),
    most: Object.freeze({
      cpuMilli: Math.round(env.ATRIUM_COMPUTER_CPU_MAX * 1_000),
      memoryMiB: env.ATRIUM_COMPUTER_MEMORY_MIB_MAX,
      diskMiB: env.ATRIUM_COMPUTER_DISK_MIB_MAX,
      idleMinutes: env.ATRIUM_COMPUTER_IDLE_MINUTES_MAX,
    }),
    /** How long a computer may stay paused before it is stopped. Paused, it costs nothing and keeps its memory. */
    pausedMs: env.ATRIUM_COMPUTER_PAUSED_HOURS * 3_600_000,
    maxTasks: env.ATRIUM_COMPUTER_MAX_TASKS,
    maxProcesses: env.ATRIUM_COMPUTER_MAX_PROCESSES,
    maxLogBytes: env.ATRIUM_COMPUTER_LOG_MIB * mebibyte,
    /** What the computers of a space may have together. Memory counts while they run, disk always. */
    perSpace: Object.freeze({
      computers: env.ATRIUM_COMPUTERS_PER_SPACE,
      running: env.ATRIUM_COMPUTERS_RUNNING_PER_SPACE,
      memoryMiB:
        env.ATRIUM_COMPUTERS_MEMORY_PER_SPACE_MIB ??
        env.ATRIUM_COMPUTERS_RUNNING_PER_SPACE * env.ATRIUM_COMPUTER_MEMORY_MIB_MAX,
      diskMiB:
        env.ATRIUM_COMPUTERS_DISK_PER_SPACE_MIB ?? env.ATRIUM_COMPUTERS_PER_SPACE * env.ATRIUM_COMPUTER_DISK_MIB_MAX,
      snapshots: env.ATRIUM_COMPUTER_SNAPSHOTS_PER_SPACE,
    }),
    perHost: env.ATRIUM_COMPUTERS_PER_HOST,
    /** How long a start, a stop, a pause or a copy may take before it counts as failed. */
    transitionMs: env.ATRIUM_COMPUTER_TRANSITION_SECONDS * 1_000,
    hostBeatMs: env.ATRIUM_COMPUTER_HOST_BEAT_SECONDS * 1_000,
    hostLostMs: env.ATRIUM_COMPUTER_HOST_BEAT_SECONDS * 1_000 * beatsToLoss,
    /** How often a host saves the homes that have changed. 0: never by itself. */
    saveMs: env.ATRIUM_COMPUTER_SAVE_SECONDS * 1_000,
    /** Whether a computer that was active on a lost host starts on another one by itself. */
    failover: env.ATRIUM_COMPUTERS_FAILOVER === 'on',
    /** Labels of this machine. Computers that name some run only on hosts that have all of them. */
    labels: env.ATRIUM_COMPUTERS_LABELS ?? [],
    /** Whether computers have the drive of their space if the machine can mount it. */
    hasDrives: env.ATRIUM_COMPUTERS_DRIVE === 'auto',
    /** How many bytes of the drives' contents a host keeps for its computers. */
    driveCacheBytes: env.ATRIUM_COMPUTERS_DRIVE_CACHE_MIB * mebibyte,
  });
  for (const name of ['cpuMilli', 'memoryMiB', 'diskMiB', 'idleMinutes'] as const) {
    if (computers.defaults[name] > computers.most[name]) {
      throw new ConfigError(`A computer’s default ${name} (ATRIUM_COMPUTER_…) is more than its maximum (…_MAX).`);
    }
  }
  return computers;
}
