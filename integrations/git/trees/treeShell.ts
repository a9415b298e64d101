import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../../computers/hostClient.ts';
import type { LiveComputers } from '../../computers/liveComputers.ts';
import { type Exit, noteOf } from '../../computers/processes/records.ts';
import { gitError, treeGone } from '../rules/failures.ts';
import type { TreeRef } from '../treeTypes.ts';
import { treeEnvironment } from './environment.ts';
import { exitCodes, failureOf } from './failures.ts';

export interface TreeCall {
  /** A shell script of ours. `$1` is the tree's path, `$2` its item, and `args` follow from `$3` on. */
  script: string;
  args?: readonly string[];
  env?: Record<string, string>;
  stdin?: string;
  /** A repeated call with the same id attaches to the same process. Reads have no id: each is a new process. */
  id?: string;
  /** Limit for the standard output. Longer output is cut, and the process is ended. */
  maxBytes?: number;
  timeoutMs?: number;
  /** The call only reads. There are fewer slots for such calls. */
  isLook?: boolean;
  signal: AbortSignal;
}

export interface TreeAnswer {
  code: number;
  stdout: Buffer;
  /** The end of the standard error. */
  said: string;
  isCut: boolean;
}

const usualMaxBytes = 1_048_576;
const usualTimeoutMs = 60_000;
/** For changes: the repository's own filters may run, and a large tree is written to a disk that others use too. */
export const changeTimeoutMs = 30 * 60_000;
/** How long a cancelled change may take to undo its half-done work. */
const undoMs = 30_000;
const maxSaid = 16_384;
/** Errors of a computer that started, stopped or was cut off during the call. */
const interrupting = new Set(['COMPUTER_NOT_RUNNING', 'COMPUTER_CONNECTION_LOST']);
const maxInterruptions = 5;
/** How often a process is started. It starts again if its computer ends it, or if it meets a lock. */
const maxBegun = 20;

/** Runs git on the files of a computer: in the computer while it runs, else beside it. */
export class TreeShell {
  readonly #computers: Pick<LiveComputers, 'work'>;

  constructor(computers: Pick<LiveComputers, 'work'>) {
    this.#computers = computers;
  }

  /** Throws `GIT_TREE_MISSING` if the computer was deleted, and `GIT_TREE_FULL`. */
  async client(tree: TreeRef): Promise<HostClient> {
    try {
      return await this.#computers.work(tree);
    } catch (error) {
      const code = error instanceof DomainError ? error.code : undefined;
      if (code === 'NOT_FOUND') throw treeGone(error);
      if (code === 'DISK_FULL') throw gitError('GIT_TREE_FULL', (error as DomainError).message, { cause: error });
      throw error;
    }
  }

  /** Runs a script to its end, even if it fails. It starts in the computer’s home. */
  async run(tree: TreeRef, call: TreeCall): Promise<TreeAnswer> {
    let interruptions = 0;
    for (let begun = 1; begun <= maxBegun; begun++) {
      const { own } = await this.client(tree);
      try {
        const answer = await attempt(own, { ...call, args: [tree.path, tree.itemId, ...(call.args ?? [])] }, begun);
        if (answer !== undefined) return answer;
      } catch (error) {
        const code = error instanceof DomainError ? error.code : undefined;
        // The id belongs to a process of another version's script. The next attempt has a new id, and finds its result.
        if (code === 'PROCESS_ID_TAKEN') continue;
        if (code === undefined || !interrupting.has(code) || ++interruptions > maxInterruptions) throw error;
        await delay(interruptions * 200, undefined, { signal: call.signal });
        begun--; // the process may have ended, so attach to the same id first
      }
    }
    throw gitError('GIT_TREE_BUSY', 'Git could not be run to its end on the computer.');
  }

  /** Runs a script. Throws a DomainError that describes the failure. */
  async do(tree: TreeRef, call: TreeCall): Promise<TreeAnswer> {
    const answer = await this.run(tree, call);
    if (answer.code === 0 || answer.isCut) return answer;
    throw failureOf(answer);
  }
}

/** Undefined if the process was ended from outside, or met a lock before we attached to it. */
async function attempt(client: HostClient, call: TreeCall, begun: number): Promise<TreeAnswer | undefined> {
  const processId = idOf(call, begun);
  try {
    return await runOnce(client, processId, call, begun);
  } finally {
    // No call attaches to a read again.
    if (call.id === undefined) void client.forgetProcess(processId).catch(() => undefined); // it is pruned later
  }
}

async function runOnce(
  client: HostClient,
  processId: string,
  call: TreeCall,
  begun: number,
): Promise<TreeAnswer | undefined> {
  const { script, args = [], stdin, maxBytes = usualMaxBytes, timeoutMs = usualTimeoutMs, isLook, signal } = call;
  signal.throwIfAborted();
  const { isNew } = await client.startProcess({
    processId,
    command: ['/bin/sh', '-c', script, 'sh', ...args],
    env: { ...treeEnvironment, ...call.env, ATRIUM_ATTEMPT: String(begun) },
    timeoutMs,
    ...(isLook && { isLook }),
    ...(stdin !== undefined && { stdin: Buffer.from(stdin).toString('base64') }),
  });
  const chunks: Buffer[] = [];
  let [size, said, isCut] = [0, '', false];
  let exit: Exit | undefined;
  try {
    for await (const record of client.output(processId, { follow: true, signal })) {
      const { kind, payload } = record;
      if (kind === 'stderr') said = `${said}${Buffer.from(payload).toString()}`.slice(-maxSaid);
      else if (kind === 'exit') exit = noteOf<Exit>(record);
      else if (kind === 'stdout' || kind === 'gap') {
        // A gap means that output in the middle was lost.
        const room = kind === 'gap' ? 0 : Math.max(0, maxBytes - size);
        isCut = kind === 'gap' || payload.length > room;
        chunks.push(Buffer.from(payload.subarray(0, room)));
        size += Math.min(payload.length, room);
        if (isCut) break;
      }
    }
  } catch (error) {
    if (signal.aborted) await end(client, processId, call.id === undefined ? 0 : undoMs);
    throw error;
  }
  const stdout = Buffer.concat(chunks);
  if (isCut) {
    await end(client, processId, 0);
    return { code: 0, stdout, said, isCut };
  }
  signal.throwIfAborted();
  if (exit?.killedBy === 'timeout') {
    throw gitError('GIT_TREE_TOO_SLOW', 'Git took too long on the computer. It may take longer where that is awake.');
  }
  if (exit?.killedBy === 'memory') throw gitError('GIT_TOO_LARGE', 'Git needs more memory for it than there is.');
  const code = exit?.exitCode;
  // Its computer is stopping. The script has undone its half-done work, and starts again beside the computer.
  if (exit?.killedBy === 'stop' && code !== 0) return undefined;
  // An earlier attempt of this call, which was given up late, has ended it. We had attached to the same process.
  if (code === exitCodes.ended) return undefined;
  if (code == null || (code === exitCodes.busy && !isNew)) return undefined;
  return { code, stdout, said, isCut };
}

function idOf({ id }: TreeCall, begun: number): string {
  if (id === undefined) return `read_${randomBytes(12).toString('hex')}`;
  return begun === 1 ? id : `${id}-${begun}`;
}

/** Asks the process to end, so that it can undo half-done work. Kills it after `graceMs`. */
async function end(client: HostClient, processId: string, graceMs: number): Promise<void> {
  try {
    if (graceMs > 0) {
      await client.signalProcess(processId, 'SIGTERM');
      const signal = AbortSignal.timeout(graceMs);
      for await (const { kind } of client.output(processId, { follow: true, signal })) if (kind === 'exit') return;
    }
  } catch {
    // The process has not ended in time, or its computer is gone.
  }
  await client.signalProcess(processId, 'SIGKILL').catch(() => undefined);
}

/** A folder for an exchange with a tree: incoming files, outgoing files, an incomplete tree, or uncommitted work. */
export type Box = 'in' | 'out' | 'new' | 'wip';

export const allBoxes: readonly Box[] = ['in', 'out', 'new', 'wip'];

/** The path of a box below the home, in a cache whose loss does no harm. */
export function boxOf({ itemId }: TreeRef, which: Box): string {
  return `.cache/atrium/git/${itemId}-${which}`;
}
