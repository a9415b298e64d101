import { describeBytes } from '../../backup/describeBytes.ts';
import type { PartProgress, Watch } from '../../backup/pace.ts';

const jsonEveryMs = 5_000;

/**
 * Shows progress on standard error: a changing line on a terminal, lines of JSON with `--json`, nothing in the log of a
 * cron job. `clear` erases the line, to make room for another.
 */
export function showPace(json: boolean): { watch: Watch | undefined; clear: () => void } {
  const { stderr } = process;
  if (json) return { watch: asJson((line) => stderr.write(`${line}\n`)), clear: () => undefined };
  if (!stderr.isTTY) return { watch: undefined, clear: () => undefined };
  const clear = () => void stderr.write('\r\u001b[K');
  return {
    watch: (progress) => {
      clear();
      stderr.write(`  ${describePace(progress)}`.slice(0, (stderr.columns ?? 80) - 1));
    },
    clear,
  };
}

/** Writes the beginning and the end of each part, and a line every few seconds between. */
export function asJson(write: (line: string) => void): Watch {
  let toldAt = 0;
  return (progress) => {
    const isEdge = progress.done === 0 || progress.done === progress.total;
    if (!isEdge && performance.now() - toldAt < jsonEveryMs) return;
    toldAt = performance.now();
    write(JSON.stringify({ progress }));
  };
}

function describePace({ part, done, total, bytesPerSecond, secondsLeft }: PartProgress): string {
  const percent = total === 0 ? 100 : Math.floor((100 * done) / total);
  const left = secondsLeft === null ? '' : `, ${describeSeconds(secondsLeft)} left`;
  const sums = `${describeBytes(done)} of about ${describeBytes(total)}`;
  return `${part}: ${percent} %, ${sums}, ${describeBytes(bytesPerSecond)}/s${left}`;
}

function describeSeconds(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`;
}
