import { mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Changes } from '../../../../base/async.ts';
import type { HolderOrder, HolderReport, HolderSpec } from '../../protocol/holderSpec.ts';
import { spawner } from '../../spawner/spawner.ts';

const maxLogBytes = 5 * 1024 * 1024;

/** A started holder. It waits for a computer or already has one. */
export interface Holder {
  /** Rejects if the holder cannot be started. */
  pid: Promise<number>;
  /** Settles when the holder has ended. */
  ended: Promise<void>;
  send(message: HolderSpec | HolderOrder): void;
  /** The next report, or `failed` if the holder has ended. */
  report(): Promise<HolderReport>;
  /** Closes the pipes. The holder goes on without us. */
  letGo(): void;
  kill(): void;
}

/** Keeps started holders ready, so that no computer waits for Node to start. */
export interface HolderPool {
  take(): Holder;
  /** Ends the waiting holders. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

interface PoolOptions {
  size: number;
  logs: string;
  command: string[];
}

export function createHolderPool({ size, logs, command }: PoolOptions): HolderPool {
  const spares = new Set<Holder>();
  let closed = false;
  const fill = () => {
    while (!closed && spares.size < size) {
      const spare = startHolder(logs, command);
      spares.add(spare);
      void spare.ended.then(() => spares.delete(spare));
    }
  };
  const clear = async () => {
    const waiting = [...spares];
    for (const spare of waiting) spare.kill();
    await Promise.all(waiting.map((spare) => spare.ended));
  };
  fill();
  return {
    take() {
      const [spare = startHolder(logs, command)] = spares;
      spares.delete(spare);
      // Fill later: a new holder would compete with the computer that is being started.
      setTimeout(fill, 200).unref();
      return spare;
    },
    clear,
    async close() {
      closed = true;
      await clear();
    },
  };
}

function startHolder(logs: string, [file = '', ...args]: string[]): Holder {
  const started = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<void>();
  const reports = new Reports();
  const child = spawner().ask({ do: 'hold', file, args, log: logFile(logs) }, (news) => {
    switch (news.news) {
      case 'started':
        return started.resolve(news.pid);
      case 'report':
        return reports.add(JSON.parse(news.line) as HolderReport);
      case 'ended':
      case 'failed': {
        const how = news.news === 'ended' ? news.how : ` (${news.reason})`;
        reports.end(`the holder ended before its computer ran${how}`);
        started.reject(new Error(`the holder could not be started${how}`));
        return ended.resolve();
      }
    }
  });
  started.promise.catch(() => undefined); // the caller of `pid` handles it
  return {
    pid: started.promise,
    ended: ended.promise,
    send: (message) => child.tell({ do: 'send', line: JSON.stringify(message) }),
    report: () => reports.next(),
    letGo: () => child.tell({ do: 'letGo' }),
    kill: () => child.tell({ do: 'kill' }),
  };
}

/** Queues the reports of a holder. After the last one, answers `failed` with the reason. */
class Reports {
  readonly #heard: HolderReport[] = [];
  #end: string | undefined;
  readonly #changes = new Changes();

  add(report: HolderReport): void {
    this.#heard.push(report);
    this.#changes.tell();
  }

  end(reason: string): void {
    this.#end ??= reason;
    this.#changes.tell();
  }

  async next(): Promise<HolderReport> {
    while (this.#heard.length === 0 && this.#end === undefined) await this.#changes.next;
    return this.#heard.shift() ?? { type: 'failed', reason: this.#end ?? '' };
  }
}

/** Returns the log file of all holders, after it rotated a large one. */
function logFile(logs: string): string {
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  const file = join(logs, 'holders.log');
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > maxLogBytes) renameSync(file, `${file}.1`);
  return file;
}
