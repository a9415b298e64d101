import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./main.ts', import.meta.url));

/** A socket comes with `opened` only. */
type Hear = (news: SpawnerNews, socket: Socket | undefined) => void;
type Order = SpawnerOrder extends infer Each ? (Each extends SpawnerOrder ? Omit<Each, 'id'> : never) : never;

/** Sends further orders about a program that the spawner was asked for. */
interface Spawned {
  tell(order: Order): void;
}

/**
 * The spawner of this process (`main.ts` says why there is one). It starts with the first request and ends with this
 * process. If it ends early, all requests under way fail, and the next request starts a new one.
 */
class Spawner {
  readonly #child: ChildProcess;
  readonly #hearing = new Map<number, Hear>();
  /** Requests whose end a caller awaits. They keep this process alive. */
  readonly #awaited = new Set<number>();
  #count = 0;

  constructor(onEnd: () => void) {
    this.#child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
      // Detached, so that Ctrl-C does not reach it while the host clears up.
      detached: true,
      cwd: '/',
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      serialization: 'json',
    });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', (news: SpawnerNews, socket) => this.#hear(news, socket as Socket | undefined));
    let hasEnded = false;
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      onEnd();
      for (const id of [...this.#hearing.keys()]) {
        this.#hear({ id, news: 'failed', reason: 'the spawner has ended' });
      }
    };
    for (const event of ['error', 'exit', 'disconnect'] as const) this.#child.once(event, end);
  }

  ask(order: Order, hear: Hear): Spawned {
    this.#count++;
    const id = this.#count;
    this.#hearing.set(id, hear);
    const tell = (what: Order) => {
      if (!this.#hearing.has(id)) return;
      if (what.do === 'run' || what.do === 'stream' || what.do === 'kill') {
        this.#awaited.add(id);
        this.#child.channel?.ref();
      }
      if (this.#child.connected) this.#child.send({ ...what, id }, () => undefined);
    };
    tell(order);
    return { tell };
  }

  #hear(news: SpawnerNews, socket?: Socket): void {
    this.#hearing.get(news.id)?.(news, socket);
    if (news.news !== 'ran' && news.news !== 'failed' && news.news !== 'ended') return;
    this.#hearing.delete(news.id);
    if (this.#awaited.delete(news.id) && this.#awaited.size === 0) this.#child.channel?.unref();
  }
}

let current: Spawner | undefined;

/** The spawner of this process. A host starts it early, so that no computer waits for it. */
export function spawner(): Spawner {
  current ??= new Spawner(() => {
    current = undefined;
  });
  return current;
}

/** The host's orders to its spawner. `id` identifies the program in all orders and news. */
export type SpawnerOrder =
  /** Runs a program of the system to its end, which is reported as `ran`. */
  | { do: 'run'; id: number; file: string; args: string[]; timeoutMs: number }
  /** Starts a program whose input and output are one stream. Reported as `opened`, its complaints, and `ended`. */
  | { do: 'stream'; id: number; command: string[] }
  /** Starts a holder, detached, with its output in a log. Reported as `started`, its reports, and `ended`. */
  | { do: 'hold'; id: number; file: string; args: string[]; log: string }
  /** Sends a line to a holder. */
  | { do: 'send'; id: number; line: string }
  /** Closes a holder's pipes. The holder goes on without us. */
  | { do: 'letGo'; id: number }
  | { do: 'kill'; id: number };

export type SpawnerNews =
  | { id: number; news: 'ran'; output: string }
  | { id: number; news: 'failed'; reason: string }
  | { id: number; news: 'started'; pid: number }
  /** Comes with the program's stream. It begins once a line was written into that. */
  | { id: number; news: 'opened' }
  /** A holder's report, or a line of a streamed program's standard error. */
  | { id: number; news: 'report'; line: string }
  /** Comes after the last report. `how` is the reason in parentheses. */
  | { id: number; news: 'ended'; how: string; code: number | null };

/** How long the spawner may take to kill a program and say so. */
const marginMs = 5_000;

/**
 * Runs a program of the system in the spawner, and returns its output. Rejects with its last complaint when it fails or
 * takes too long. The signal kills it, and its reason is thrown once the program has ended.
 */
export async function run(
  file: string,
  args: string[],
  { timeoutMs = 20_000, signal }: { timeoutMs?: number; signal?: AbortSignal | undefined } = {},
): Promise<string> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`${file} did not end within ${timeoutMs / 1_000} s`));
    const timer = setTimeout(late, timeoutMs + marginMs);
    const child = spawner().ask({ do: 'run', file, args, timeoutMs }, (news) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', kill);
      if (news.news === 'ran') resolve(news.output);
      else if (news.news === 'failed') reject(signal?.aborted === true ? signal.reason : new Error(news.reason));
    });
    const kill = () => child.tell({ do: 'kill' });
    signal?.addEventListener('abort', kill, { once: true });
  });
}
