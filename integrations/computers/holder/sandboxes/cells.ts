import { writeFileSync } from 'node:fs';
import type { CellCommand } from '../../protocol/holderSpec.ts';
import { endFirst, parentOf } from '../../system/stamps.ts';
import { Agent, refusalOf } from '../agent.ts';
import { makeSandbox, type Sandbox } from './sandbox.ts';

/** A cell. Its agent starts one process. */
export interface Cell {
  agent: Agent;
  end(): void;
}

interface CellsOptions {
  command: CellCommand;
  /** The first process of the computer's own sandbox. */
  init: number;
  /** Cgroup files. Writing a pid to them puts that process under the limits of the computer's work. */
  workProcs: readonly string[];
  startTimeoutMs: number;
}

/**
 * Sandboxes beside the computer's own, each for one process that has been given secrets. They share the computer's home
 * and network, but have their own pid namespace. So other processes of the computer can neither read the process's
 * variables and memory nor trace it, though all run as one user.
 */
export class Cells {
  readonly #options: CellsOptions;
  readonly #open = new Set<Sandbox>();
  #isOver = false;

  constructor(options: CellsOptions) {
    this.#options = options;
  }

  /** Throws `COMMAND_NOT_STARTED` if no cell can be made. */
  async open(): Promise<Cell> {
    const sandbox = await this.#make().catch((error: unknown) => {
      process.stderr.write(`${new Date().toISOString()} No cell: ${String(error)}\n`);
      throw refusalOf('COMMAND_NOT_STARTED');
    });
    const { startTimeoutMs } = this.#options;
    const slow = setTimeout(() => sandbox.kill(), startTimeoutMs);
    const agent = new Agent(sandbox.output, sandbox.input, {
      // The computer's own agent serves the shared network.
      egressSocket: null,
      onReady: () => clearTimeout(slow),
      onEnd: () => sandbox.kill(),
    });
    void sandbox.ended.then((how) => {
      clearTimeout(slow);
      this.#open.delete(sandbox);
      agent.end(new Error(how));
    });
    sandbox.release();
    return { agent, end: () => sandbox.kill() };
  }

  end(): void {
    this.#isOver = true;
    for (const sandbox of this.#open) sandbox.kill();
  }

  async #make(): Promise<Sandbox> {
    const { command, init, workProcs } = this.#options;
    const around = parentOf(init);
    if (around === undefined || this.#isOver) throw new Error('the computer has ended');
    const { nsenter, command: inside, ...others } = command;
    const spaces = ['user', 'net'].map((space) => `--${space}=/proc/${around}/ns/${space}`);
    const args = ['--preserve-credentials', ...spaces, '--', ...inside];
    const sandbox = await makeSandbox({ ...others, file: nsenter, args });
    this.#open.add(sandbox);
    try {
      if (this.#isOver) throw new Error('the computer has ended');
      const pids = sandbox.pids === null ? [] : [sandbox.pids.monitor, sandbox.pids.init];
      for (const pid of pids) for (const file of workProcs) writeFileSync(file, String(pid));
      endFirst(pids);
      return sandbox;
    } catch (error) {
      sandbox.kill();
      this.#open.delete(sandbox);
      throw error;
    }
  }
}
