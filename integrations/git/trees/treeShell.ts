import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../../computers/hostClient.ts';
import type { LiveComputers } from '../../computers/liveComputers.ts';
import { type Exit, noteOf } from '../../computers/processes/records.ts';
import { describeConflict } from '../rules/describeConflict.ts';
import { cleanWords } from '../rules/describeFailure.ts';
import { type GitFailure, gitError, treeGone, treeMissing } from '../rules/failures.ts';
import type { TreeRef } from '../treeTypes.ts';
import { treeEnvironment } from './environment.ts';

export interface TreeCall {
  /** A shell script of ours. Everything else comes in as its arguments, from `$1` on. */
  script: string;
  args?: readonly string[];
  env?: Record<string, string>;
  stdin?: string;
  /**
   * Who runs this again gets the process that has this name, or what it has said. Without one it is a new process each
   * time, as reads are.
   */
  id?: string;
  /** Of its standard output. What is longer is cut, and the process ended. */
  maxBytes?: number;
  timeoutMs?: number;
  /** Somebody only looks: there are fewer places for that at once. */
  isLook?: boolean;
  signal: AbortSignal;
}

export interface TreeAnswer {
  code: number;
  stdout: Buffer;
  /** The end of what it said beside that. */
  said: string;
  isCut: boolean;
}

/** What our scripts end with, beside git’s own codes. */
export const exitCodes = {
  nothing: 65,
  missing: 66,
  conflicted: 67,
  unfinished: 68,
  tooMuch: 69,
  occupied: 73,
  busy: 75,
} as const;

const usualMaxBytes = 1_048_576;
const usualTimeoutMs = 60_000;
/** How long a change that is called off may take to undo what it has half done. */
const undoMs = 30_000;
const maxSaid = 16_384;
/** What says that the computer has started, stopped or been cut off meanwhile. */
const interrupting = new Set(['COMPUTER_NOT_RUNNING', 'COMPUTER_CONNECTION_LOST']);
const maxInterruptions = 5;
/** How often a process is begun again that was ended by its computer, or has met a lock. */
const maxBegun = 20;

/** Runs git among the files of a computer: in it while it runs, else beside it. */
export class TreeShell {
  readonly #computers: Pick<LiveComputers, 'work'>;

  constructor(computers: Pick<LiveComputers, 'work'>) {
    this.#computers = computers;
  }

  /** Throws `GIT_TREE_MISSING` where the computer was deleted, and `GIT_TREE_FULL`. */
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

  /** Runs a script to its end, whatever that is. It begins in the computer’s home. */
  async run(tree: TreeRef, call: TreeCall): Promise<TreeAnswer> {
    let interruptions = 0;
    for (let begun = 1; begun <= maxBegun; begun++) {
      const { own } = await this.client(tree);
      try {
        const answer = await attempt(own, call, begun);
        if (answer !== undefined) return answer;
      } catch (error) {
        const code = error instanceof DomainError ? error.code : undefined;
        // One of the same name from before an upgrade, whose script was another: the next one sees what it did.
        if (code === 'PROCESS_ID_TAKEN') continue;
        if (code === undefined || !interrupting.has(code) || ++interruptions > maxInterruptions) throw error;
        await delay(interruptions * 200, undefined, { signal: call.signal });
        begun--; // it may have come to its end: that is looked at first
      }
    }
    throw gitError('GIT_TREE_BUSY', 'Git could not be run to its end on the computer.');
  }

  /** The same, where any end but a good one is a failure. */
  async do(tree: TreeRef, call: TreeCall): Promise<TreeAnswer> {
    const answer = await this.run(tree, call);
    if (answer.code === 0 || answer.isCut) return answer;
    throw failureOf(answer);
  }
}

/** Undefined where it did not come to an end of its own, or met a lock before we looked. */
async function attempt(client: HostClient, call: TreeCall, begun: number): Promise<TreeAnswer | undefined> {
  const processId = idOf(call, begun);
  try {
    return await runOnce(client, processId, call, begun);
  } finally {
    // Of a read, nobody asks again.
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
        // A gap is in the middle: what comes after it does not belong to what came before.
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
  // Its computer stops: it has undone what it had half done, and is begun again beside it.
  if (exit?.killedBy === 'stop' && code !== 0) return undefined;
  if (code == null || (code === exitCodes.busy && !isNew)) return undefined;
  return { code, stdout, said, isCut };
}

function idOf({ id }: TreeCall, begun: number): string {
  if (id === undefined) return `read_${randomBytes(12).toString('hex')}`;
  return begun === 1 ? id : `${id}-${begun}`;
}

/** Asks it to end within a time, in which it undoes what it has half done, and kills it then. */
async function end(client: HostClient, processId: string, graceMs: number): Promise<void> {
  try {
    if (graceMs > 0) {
      await client.signalProcess(processId, 'SIGTERM');
      const signal = AbortSignal.timeout(graceMs);
      for await (const { kind } of client.output(processId, { follow: true, signal })) if (kind === 'exit') return;
    }
  } catch {
    // It has not ended, or its computer has.
  }
  await client.signalProcess(processId, 'SIGKILL').catch(() => undefined);
}

/** What git’s words mean in a working tree, first match first. */
const meanings: [pattern: RegExp, code: GitFailure, sentence: string | ((words: string, other?: string) => string)][] =
  [
    [
      /from promisor remote|lazy fetching disabled/,
      'GIT_OBJECTS_MISSING',
      'This needs versions of files that the partial clone has left with its remote.',
    ],
    [/a branch named .* already exists/, 'GIT_BRANCH_EXISTS', 'There is a branch of that name.'],
    [
      /cannot lock ref|unable to create directory|File name too long|cannot create/i,
      'GIT_BRANCH_NAME_REFUSED',
      'A branch cannot have this name beside those that are there.',
    ],
    [
      /not a valid object name|unknown revision|did not match any file\(s\) known|invalid reference|not a commit|bad revision|ambiguous argument/i,
      'GIT_REF_UNKNOWN',
      'There is no such branch or commit.',
    ],
    [
      /would be (?:overwritten|removed)|Please commit your changes|you need to resolve your current index|not possible because you have unmerged|Automatic merge failed|not possible to fast-forward|You have not concluded/i,
      'GIT_CONFLICT',
      describeConflict,
    ],
    [/No space left on device|Disk quota exceeded/i, 'GIT_TREE_FULL', 'There is no room left on the computer.'],
    [/Unable to create .*\.lock|index file open failed/, 'GIT_TREE_BUSY', 'Another git works in this tree.'],
  ];

/** `other` is what was to be merged. */
export function failureOf({ code, stdout, said }: TreeAnswer, other?: string): DomainError {
  if (code === exitCodes.missing) return treeMissing();
  if (code === exitCodes.busy) return gitError('GIT_TREE_BUSY', 'Another git works in this tree.');
  if (code === exitCodes.occupied) {
    return gitError('GIT_TREE_OCCUPIED', 'Another folder is where the repository’s files are to be.');
  }
  const words = `${stdout.toString()}\n${said}`;
  const cause = new Error(`git ended with ${code}: ${words.slice(-2_000)}`);
  const [, known, sentence] = meanings.find(([pattern]) => pattern.test(words)) ?? [];
  if (known !== undefined && sentence !== undefined) {
    return gitError(known, typeof sentence === 'string' ? sentence : sentence(words, other), { cause });
  }
  const told = cleanWords(words, 300);
  return gitError('GIT_TREE_FAILED', told === '' ? 'Git has failed on the computer.' : `Git says: ${told}`, { cause });
}
