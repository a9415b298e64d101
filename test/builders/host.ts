import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHost } from '../../integrations/computers/host/createHost.ts';
import type { Host, HostOptions } from '../../integrations/computers/host/host.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ComputerLimits, ComputerSpec, ProcessInfo, StartProcess } from '../../integrations/computers/types.ts';
import { agentProgram, cacheDir, nodeInside } from '../support/computerPrograms.ts';

export const usualLimits: ComputerLimits = {
  cpuMilli: 1_000,
  memoryMiB: 256,
  diskMiB: 128,
  maxTasks: 100,
  maxProcesses: 32,
  maxLogBytes: 1_048_576,
};

let count = 0;

/** The spec of a new computer, for its first start. */
export function computerSpec(changes: Partial<ComputerSpec> & { limits?: ComputerLimits } = {}): ComputerSpec {
  count += 1;
  return {
    computerId: `cmp_test${process.pid}x${count}`,
    spaceId: 'spc_test',
    generation: 1,
    limits: usualLimits,
    env: {},
    ...changes,
  };
}

/** A folder for a host. Other users may enter it. */
export function hostDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'atrium-host-'));
  chmodSync(dir, 0o711);
  return dir;
}

/** A host in a folder of its own. Dispose of it, since it has mounts, and processes that outlive the test. */
export async function buildHost(options: Partial<HostOptions> = {}) {
  const dir = options.dir ?? hostDir();
  const host = await createHost({
    agent: await agentProgram(),
    imageMiB: 2_048,
    cacheDir,
    ...options,
    dir,
    readOnly: (spec) => [nodeInside, ...(options.readOnly?.(spec) ?? [])],
  });
  return {
    host,
    dir,
    async [Symbol.asyncDispose]() {
      for (const { computerId } of await host.list()) await host.destroy(computerId);
      await host.shutdown();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Starts a new computer, or one with these `changes`. */
export async function startComputer(host: Host, changes: Parameters<typeof computerSpec>[0] = {}) {
  const spec = computerSpec(changes);
  await host.start(spec);
  return { spec, computerId: spec.computerId, client: host.client(spec.computerId) };
}

export interface Ran extends ProcessInfo {
  stdout: string;
  stderr: string;
}

/** Runs a command to its end. */
export async function runOn(
  client: HostClient,
  command: string | string[],
  options: Partial<StartProcess> = {},
): Promise<Ran> {
  count += 1;
  const processId = options.processId ?? `prc_test${count}`;
  await client.startProcess({ processId, command, timeoutMs: 60_000, ...options });
  const texts: Record<string, Buffer[]> = { stdout: [], stderr: [] };
  for await (const { kind, payload } of client.output(processId, { follow: true })) {
    texts[kind]?.push(Buffer.from(payload));
  }
  const textOf = (kind: string) => Buffer.concat(texts[kind] ?? []).toString();
  return { ...(await client.process(processId)), stdout: textOf('stdout'), stderr: textOf('stderr') };
}
