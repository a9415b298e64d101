import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComputerHost } from '../../activities/computers/deps.ts';
import { HomeSaves } from '../../activities/computers/homeSaves.ts';
import { createHostActivities } from '../../activities/computers/hostActivities.ts';
import { HostBeat } from '../../activities/computers/hostBeat.ts';
import { createServices } from '../../bin/support/services.ts';
import { loadConfig } from '../../config/index.ts';
import { HostError, type HostErrorCode } from '../../integrations/computers/host/hostErrors.ts';
import type { HostedState } from '../../integrations/computers/types.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/launcher.ts';
import { hostTaskQueue } from '../../temporal/taskQueues.ts';
import { startWorker } from '../../temporal/workers.ts';

/**
 * A host whose computers are entries of a file. It can do what no real host does on request: hang, refuse, and lose
 * computers. Arguments: its id and a folder. In the folder, `computers.json` has its computers, `behaviour.json` its
 * behaviour, `calls` the received calls.
 */
const [, , hostId = '', folder = ''] = process.argv;
const [stateFile, behaviourFile, callsFile] = ['computers.json', 'behaviour.json', 'calls'].map((name) =>
  join(folder, name),
) as [string, string, string];

type State = Record<string, HostedState>;
type Call = 'start' | 'stop' | 'pause' | 'resume' | 'destroy' | 'fork';

const read = <T>(file: string, none: T): T => (existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : none);
const stateOf = (computerId: string): HostedState => read<State>(stateFile, {})[computerId] ?? { state: 'absent' };
const put = (computerId: string, hosted: HostedState) =>
  writeFileSync(stateFile, JSON.stringify({ ...read<State>(stateFile, {}), [computerId]: hosted }));

async function asked(call: Call, computerId: string, more = ''): Promise<void> {
  appendFileSync(callsFile, `${call} ${computerId} ${more}\n`);
  const how = read<Partial<Record<Call, string>>>(behaviourFile, {})[call];
  if (how === 'hang') await new Promise(() => undefined);
  if (how === 'crash') throw new Error('something unexpected');
  if (how !== undefined) throw new HostError(how as HostErrorCode, 'as the test wants it');
}

const host: ComputerHost = {
  hostId,
  drivers: ['bubblewrap'],
  bases: [],
  prepareBase: async () => undefined,
  prepareImage: async () => undefined,
  resolveImage: () => Promise.reject(new HostError('IMAGES_OFF', 'There are no images.')),
  async start({ computerId, generation, env }) {
    await asked('start', computerId, `${generation} ${Object.keys(env).join(',')}`);
    const now = new Date().toISOString();
    const isThere = stateOf(computerId);
    if (isThere.state === 'running' && isThere.generation === generation) return;
    put(computerId, { state: 'running', generation, startedAt: now, lastActiveAt: now, runningProcesses: 0 });
  },
  async stop(computerId, { generation = Number.POSITIVE_INFINITY } = {}) {
    await asked('stop', computerId, String(generation));
    const hosted = stateOf(computerId);
    if ('generation' in hosted && hosted.generation <= generation) put(computerId, { state: 'gone' });
  },
  async pause(computerId) {
    await asked('pause', computerId);
    const hosted = stateOf(computerId);
    if ('generation' in hosted) put(computerId, { ...hosted, state: 'paused' });
  },
  async resume(computerId) {
    await asked('resume', computerId);
    const hosted = stateOf(computerId);
    if ('generation' in hosted) put(computerId, { ...hosted, state: 'running' });
  },
  async destroy(computerId) {
    await asked('destroy', computerId);
    const { [computerId]: _removed, ...others } = read<State>(stateFile, {});
    writeFileSync(stateFile, JSON.stringify(others));
  },
  async fork(from, { computerId }) {
    await asked('fork', computerId, from);
    put(computerId, { state: 'gone' });
  },
  // Its computers have no homes.
  saves: {
    format: 'btrfs',
    changed: async () => [],
    kept: () => [],
    isFull: () => false,
    take: () => Promise.reject(new Error('There is no home.')),
    read: () => {
      throw new Error('There is no home.');
    },
    keepOnly: async () => undefined,
    keep: async () => undefined,
    fill: async () => undefined,
    forgetFill: async () => undefined,
  },
  inspect: async (computerId) => stateOf(computerId),
  list: async () => Object.entries(read<State>(stateFile, {})).map(([computerId, hosted]) => ({ computerId, hosted })),
};

const config = loadConfig();
const logger = createLogger({ level: config.logLevel });
const services = await createServices({ config, logger, readers: false, remoteWriters: false });
const { temporal } = services;
const workflows = createLauncher({ client: temporal.client, config, logger, sharesWorkersConnection: false });
const deps = { ...services, workflows, host, environment: { HTTP_PROXY: 'the way out' } };
const beat = new HostBeat(deps, {
  address: null,
  cpuMilli: 2_000,
  memoryMiB: 262_144,
  maxRunning: config.computers.perHost,
});
const taskQueue = hostTaskQueue(config.installation, hostId);
const forEver = new AbortController().signal;
const homeSaves = new HomeSaves(deps, forEver);
const activities = createHostActivities({ ...deps, homeSaves });
await startWorker({ temporal, config, taskQueue, activities, runsWorkflows: false, shutdownGraceMs: 0 });
await beat.beat();
void beat.run(forEver);
void homeSaves.run({ wholeHomes: false });
process.stdout.write('ready\n');
// Ends with the test that started it.
process.stdin.resume().once('end', () => process.exit());
