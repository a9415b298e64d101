import { join } from 'node:path';
import { createHost } from '../../../integrations/computers/host/createHost.ts';
import type { Host, HostOptions } from '../../../integrations/computers/host/host.ts';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord, writeRecord } from '../../../integrations/computers/host/records.ts';
import { buildHost, computerSpec, hostDir, runOn, startComputer } from '../../builders/host.ts';
import { startDockerEngine } from '../../fakes/dockerEngine.ts';
import { agentProgram } from '../../support/computerPrograms.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const [usable] = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe('a driver that is missing when its host starts', () => {
  if (usable?.driver !== 'bubblewrap') {
    process.stderr.write(`\nNOT RUN: a driver that is away: ${drivers[0]?.missing}\n`);
    it(`is not tested on this machine: ${drivers[0]?.missing}`, () => expect(drivers[0]?.missing).not.toBe(''));
    return;
  }
  const { options } = usable;
  let dir: string;
  let socket: string;
  let host: Host | undefined;
  const logged: string[] = [];
  /** Starts the next host in the folder. */
  const open = async (more: Partial<HostOptions>): Promise<Host> => {
    await host?.close();
    const deadlines = { driverMs: 20, driverMostMs: 20 };
    const log: HostOptions['log'] = (_level, _facts, message) => void logged.push(message);
    host = await createHost({ agent: await agentProgram(), imageMiB: 2_048, ...options, dir, deadlines, log, ...more });
    return host;
  };
  const withDocker = () => open({ drivers: ['bubblewrap', 'docker'], docker: { address: `unix://${socket}` } });
  /** Starts a computer whose record says that it is a container. */
  const startAsContainer = async (on: Host) => {
    const { computerId, client } = await startComputer(on);
    const layout = hostLayout(dir);
    const record = readRecord(layout, computerId);
    if (record?.run == null) throw new Error('It has no record.');
    const run = { ...record.run, spec: { ...record.run.spec, driver: 'docker' as const } };
    writeRecord(layout, { ...record, run });
    return { computerId, client };
  };

  beforeEach(() => {
    dir = hostDir();
    socket = join(dir, 'engine.sock');
  });
  afterEach(async () => {
    await host?.close();
    host = undefined;
    // Dispose of the remaining computers.
    await using _rest = await buildHost({ ...options, dir });
  });

  it('keeps its computers, which stay running and cannot be paused or stopped', async () => {
    const { computerId, client } = await startAsContainer(await open({}));
    const next = await withDocker();
    expect(next.drivers).toEqual(['bubblewrap']);
    expect(next.refused).toEqual([{ name: 'docker', refused: expect.stringContaining('cannot be used') }]);
    const away = { code: 'HOST_FAILED', message: expect.stringContaining('docker') };
    await expect(next.pause(computerId)).rejects.toMatchObject(away);
    await expect(next.stop(computerId)).rejects.toMatchObject(away);
    await expect(next.metrics(computerId)).rejects.toMatchObject(away);
    expect(await next.sweep()).toContainEqual(expect.stringMatching(`^${computerId}: .*docker`));
    await expect(next.inspect(computerId)).resolves.toMatchObject({ state: 'running' });
    expect(await next.list()).toEqual([{ computerId, hosted: expect.objectContaining({ state: 'running' }) }]);
    expect((await runOn(client, 'echo here')).stdout).toBe('here\n');
  });

  it('is used once it is there, without a restart of the host', async () => {
    const { computerId } = await startAsContainer(await open({}));
    const next = await withDocker();
    await expect(next.stop(computerId)).rejects.toMatchObject({ code: 'HOST_FAILED' });
    await using _engine = await startDockerEngine(socket);
    await waitFor('both drivers', async () => next.drivers.length === 2);
    expect([next.drivers, next.refused]).toEqual([['bubblewrap', 'docker'], []]);
    expect(logged).toContain('A driver has become available');
    await next.stop(computerId);
    await expect(next.inspect(computerId)).resolves.toEqual({ state: 'gone' });
  });

  it('does not prevent a stop of its computers if the host is no longer configured for it', async () => {
    const { computerId } = await startAsContainer(await open({}));
    const next = await open({ drivers: ['bubblewrap'] });
    await next.stop(computerId);
    await expect(next.inspect(computerId)).resolves.toEqual({ state: 'gone' });
  });

  it('is waited for by a host with no other driver', async () => {
    const next = await open({ drivers: ['docker'], docker: { address: `unix://${socket}` } });
    expect(next.drivers).toEqual([]);
    await expect(next.start(computerSpec())).rejects.toMatchObject({ code: 'START_FAILED' });
    await using _engine = await startDockerEngine(socket);
    await waitFor('the driver', async () => next.drivers.length === 1);
    expect(next.drivers).toEqual(['docker']);
  });
});
