import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./main.ts', import.meta.url));

type Hear = (news: SpawnerNews) => void;
type Order = SpawnerOrder extends infer Each ? (Each extends SpawnerOrder ? Omit<Each, 'id'> : never) : never;

/** Something that the spawner was asked for, and tells about until it is over. */
interface Spawned {
  tell(order: Order): void;
}

/**
 * The small process that starts programs for this one (`main.ts` says why). There is one, started when it is needed
 * first; it ends with this process. Should it end before, all that it was asked for has failed, and the next gets a new
 * one.
 */
class Spawner {
  readonly #child: ChildProcess;
  readonly #hearing = new Map<number, Hear>();
  /** Those whose end somebody waits for: they keep this process alive. */
  readonly #awaited = new Set<number>();
  #count = 0;

  constructor(onEnd: () => void) {
    this.#child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
      // What interrupts us is not for it: there may be something to clear up.
      detached: true,
      cwd: '/',
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      serialization: 'json',
    });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', (news: SpawnerNews) => this.#hear(news));
    let hasEnded = false;
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      onEnd();
      for (const id of [...this.#hearing.keys()]) {
        this.#hear({ id, news: 'failed', reason: 'what starts programs has ended' });
      }
    };
    for (const event of ['error', 'exit', 'disconnect'] as const) this.#child.once(event, end);
  }

  ask(order: Order, hear: Hear): Spawned {
    this.#count++;
    const id = this.#count;
    this.#hearing.set(id, hear);
    const tell = (what: Order) => {
      if (!this.#hearing.has(id)) return; // it is over
      if (what.do === 'run' || what.do === 'kill') {
        this.#awaited.add(id);
        this.#child.channel?.ref();
      }
      if (this.#child.connected) this.#child.send({ ...what, id }, () => undefined);
    };
    tell(order);
    return { tell };
  }

  #hear(news: SpawnerNews): void {
    this.#hearing.get(news.id)?.(news);
    if (news.news !== 'ran' && news.news !== 'failed' && news.news !== 'ended') return;
    this.#hearing.delete(news.id);
    if (this.#awaited.delete(news.id) && this.#awaited.size === 0) this.#child.channel?.unref();
  }
}

let current: Spawner | undefined;

/** That of this process. A host starts it, so that no computer waits for it. */
export function spawner(): Spawner {
  if (current === undefined) {
    const made = new Spawner(() => {
      if (current === made) current = undefined;
    });
    current = made;
  }
  return current;
}

/** What a host asks its spawner for. `id` names what is started in all that is said of it. */
export type SpawnerOrder =
  /** A program of the system: runs to its end, which is told as `ran`. */
  | { do: 'run'; id: number; file: string; args: string[]; timeoutMs: number }
  /** A holder, detached, with its output and complaints in a log. Told as `started`, its reports, and `ended`. */
  | { do: 'hold'; id: number; file: string; args: string[]; log: string }
  /** A line for a holder. */
  | { do: 'send'; id: number; line: string }
  /** It is to go on without us: its pipes are closed. */
  | { do: 'letGo'; id: number }
  | { do: 'kill'; id: number };

export type SpawnerNews =
  | { id: number; news: 'ran'; output: string }
  | { id: number; news: 'failed'; reason: string }
  | { id: number; news: 'started'; pid: number }
  | { id: number; news: 'report'; line: string }
  /** After its last report. How, in parentheses, where there is anything to say. */
  | { id: number; news: 'ended'; how: string };

/** To end it, and to say so. */
const marginMs = 5_000;

/**
 * Runs a program of the system and gives what it printed. Rejects with what it said when it fails or takes too long. With
 * the signal it is killed, and the signal's reason is given once it has ended.
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
