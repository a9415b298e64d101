import { spawner } from '../spawner/spawner.ts';

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
