/** Takes lines for a person: the screen of `npm start`, nothing in tests. */
export type Report = (line: string) => void;

/** "0.4 s", "12 s", "3 min 12 s". */
export function formatDuration(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Runs a step and reports how long it took. Announces slow steps before they begin. */
export async function timed<T>(
  report: Report,
  step: { announce?: string; done: string },
  work: () => Promise<T>,
): Promise<T> {
  const begin = performance.now();
  if (step.announce !== undefined) report(`${step.announce} …`);
  const result = await work();
  report(`${step.done} (${formatDuration(performance.now() - begin)})`);
  return result;
}
