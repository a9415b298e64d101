import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gitError } from '../rules/failures.ts';

export interface GitRun {
  args: readonly string[];
  environment: Record<string, string>;
  cwd: string;
  /** Limits for each file that git writes, and for its address space. */
  limits: { fileBytes: number; memoryBytes: number };
  /** Git's standard input. By default there is none. */
  input?: string | Buffer | Readable | undefined;
  /** An open file or a listener that gets the output. By default it is collected, up to a limit. */
  output?: { descriptor: number } | ((chunk: Buffer) => void) | undefined;
  maxOutputBytes?: number;
  /** Gets each line of git's standard error, including progress. */
  onLine?: ((line: string) => void) | undefined;
  /** Answers the questions of the credential helper. */
  onHelper?: ((socket: Duplex) => void) | undefined;
  /** The descriptor of a lock. The lock lasts while any process has it, even if ours is killed. */
  lock: number;
  signal: AbortSignal;
}

export interface GitOutcome {
  code: number | null;
  signal: NodeJS.Signals | null;
  output: Buffer;
  /** The end of git's standard error, without progress. */
  said: string;
}

/** A line that git writes because of GIT_TRACE_PACKET. */
export const traced = /^\d\d:\d\d:\d\d\.\d+ .*?packet: /;

const maxSaid = 32_768;
const maxOutput = 64 * 1_048_576;

/** Sets the limits and becomes git. A limit that the system lacks is skipped. */
const script = 'ulimit -c 0; ulimit -f "$1" 2>/dev/null; ulimit -v "$2" 2>/dev/null; shift 2; exec git "$@"';

/**
 * Runs git in a process group of its own, and returns when the whole group has ended: git starts helpers that outlive
 * it. Rejects with the signal's reason if the signal ended it.
 */
export async function runGit(run: GitRun): Promise<GitOutcome> {
  run.signal.throwIfAborted();
  const { limits, output } = run;
  const [blocks, kibibytes] = [Math.ceil(limits.fileBytes / 512), Math.ceil(limits.memoryBytes / 1_024)];
  const child = spawn('/bin/sh', ['-c', script, 'sh', String(blocks), String(kibibytes), ...run.args], {
    cwd: run.cwd,
    env: run.environment,
    detached: true,
    stdio: [
      run.input === undefined ? 'ignore' : 'pipe',
      typeof output === 'object' ? output.descriptor : 'pipe',
      'pipe',
      run.onHelper === undefined ? 'ignore' : 'pipe',
      run.lock,
    ],
  });
  const kill = () => killGroup(child);
  run.signal.addEventListener('abort', kill, { once: true });
  try {
    const said = listen(child.stderr, run.onLine);
    const collected = collect(child.stdout, run, kill);
    const helper = child.stdio[3] as Duplex | null;
    if (helper !== null) run.onHelper?.(helper.on('error', () => undefined));
    const fed = feed(child.stdin, run.input);
    const ended = Promise.withResolvers<Pick<GitOutcome, 'code' | 'signal'>>();
    // Helpers that git leaves behind would keep the pipes open.
    child.once('exit', kill);
    child.once('close', (code, signal) => ended.resolve({ code, signal }));
    child.once('error', () => ended.reject(gitError('GIT_NOT_INSTALLED', 'Git cannot be started on this machine.')));
    const outcome = await ended.promise;
    run.signal.throwIfAborted();
    const failure = await fed;
    if (failure !== undefined && outcome.code === 0) throw failure;
    const answer = { ...outcome, output: collected(), said: said() };
    if (answer.code === 127) throw gitError('GIT_NOT_INSTALLED', 'Git is not installed on this machine.');
    // A failure of the input explains more than git's message about a truncated input.
    if (failure !== undefined && !isClosed(failure)) throw failure;
    return answer;
  } finally {
    run.signal.removeEventListener('abort', kill);
    kill();
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}

/** Passes lines on, and keeps the last ones that are not progress. */
function listen(stderr: Readable | null, onLine: GitRun['onLine']): () => string {
  let said = '';
  let open = '';
  const take = (line: string) => {
    onLine?.(line);
    if (traced.test(line)) return;
    if (!/^(remote: )?[A-Z][a-z]+ [a-z]+: +\d+%/.test(line)) said = `${said}${line}\n`.slice(-maxSaid);
  };
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    const lines = `${open}${text}`.split(/[\r\n]+/);
    open = (lines.pop() ?? '').slice(-maxSaid);
    for (const line of lines) take(line);
  });
  return () => {
    if (open !== '') take(open);
    open = '';
    return said;
  };
}

function collect(stdout: Readable | null, run: GitRun, kill: () => void): () => Buffer {
  const { output, maxOutputBytes = maxOutput } = run;
  const chunks: Buffer[] = [];
  let size = 0;
  stdout?.on('data', (chunk: Buffer) => {
    if (typeof output === 'function') return output(chunk);
    size += chunk.length;
    if (size > maxOutputBytes) kill();
    else chunks.push(chunk);
  });
  return () => {
    if (size > maxOutputBytes) throw gitError('GIT_TOO_LARGE', 'Git answers more than can be read.');
    return Buffer.concat(chunks);
  };
}

/** Writes the input. Resolves with a failure instead of rejecting: whether it counts depends on how git ends. */
async function feed(stdin: Writable | null, input: GitRun['input']): Promise<unknown> {
  if (stdin === null || input === undefined) return undefined;
  if (typeof input === 'string' || Buffer.isBuffer(input)) {
    stdin.on('error', () => undefined).end(input);
    return undefined;
  }
  let hasGitClosed = false;
  const look = () => {
    hasGitClosed ||= !input.destroyed;
  };
  // These handlers run before the pipeline's, which also destroys the input.
  stdin.once('error', look).once('close', look);
  try {
    await pipeline(input, stdin);
    return undefined;
  } catch (error) {
    // Git may read the last bytes and exit before we notice either.
    return isClosed(error) && (input.readableEnded || hasGitClosed) ? undefined : error;
  }
}

/** Whether the error means that git closed its input. */
function isClosed(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(String((error as NodeJS.ErrnoException).code));
}
