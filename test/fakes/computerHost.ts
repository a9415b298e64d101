import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { newId } from '../../base/ids.ts';
import type { HostedState } from '../../integrations/computers/types.ts';
import { plainEnvironment } from '../support/atrium.ts';
import type { TestEnvironment } from '../support/environment.ts';

const program = join(import.meta.dirname, 'computerHostProcess.ts');

export type HostCall = 'start' | 'stop' | 'pause' | 'resume' | 'destroy' | 'fork';

/** A host in a process of its own, controlled by the test: see computerHostProcess.ts. */
export interface FakeHost {
  id: string;
  /** The calls about a computer, in order: `start`, `stop` … */
  calls(computerId: string): string[];
  /**
   * How the host treats later calls: `hang` never answers, `crash` fails unexpectedly, an error code refuses the call.
   * Other calls are executed.
   */
  behave(how: Partial<Record<HostCall, string>>): void;
  /** The state of a computer. A killed process leaves it unchanged, as real holders go on without their host. */
  state(computerId: string): HostedState | undefined;
  /** Changes the state of a computer without the host's knowledge. */
  put(computerId: string, hosted: HostedState | undefined): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFakeHost({
  environment,
  config,
}: Pick<TestEnvironment, 'environment' | 'config'>): Promise<FakeHost> {
  const folder = mkdtempSync(join(config.dataDir, 'host-'));
  const id = newId('computerHost');
  const file = (name: string) => join(folder, name);
  const read = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '');
  const states = () => JSON.parse(read('computers.json') || '{}') as Record<string, HostedState>;
  let child = await launch();

  async function launch() {
    const started = spawn(process.execPath, [program, id, folder], {
      env: plainEnvironment(environment),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: started.stdout });
    const first = await Promise.race([once(lines, 'line'), once(started, 'exit')]);
    if (first[0] !== 'ready') throw new Error(`The host ended before it was ready: ${first[0]}`);
    return started;
  }

  async function kill() {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  return {
    id,
    calls: (computerId) =>
      read('calls')
        .split('\n')
        .map((line) => line.split(' '))
        .filter(([, about]) => about === computerId)
        .map(([call = '']) => call),
    behave: (how) => writeFileSync(file('behaviour.json'), JSON.stringify(how)),
    state: (computerId) => states()[computerId],
    put(computerId, hosted) {
      const { [computerId]: _before, ...others } = states();
      const all = hosted === undefined ? others : { ...others, [computerId]: hosted };
      writeFileSync(file('computers.json'), JSON.stringify(all));
    },
    kill,
    async restart() {
      await kill();
      child = await launch();
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
