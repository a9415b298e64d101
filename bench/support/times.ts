/** The value below which a share of the samples lies. */
export function quantile(samples: number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** The median and the slow end of times in milliseconds, for people. */
export function quantiles(times: number[]): string {
  return `${quantile(times, 0.5).toFixed(1)} ms p50, ${quantile(times, 0.95).toFixed(1)} ms p95`;
}

/** How long `work` takes, in milliseconds. */
export async function timed(work: () => Promise<unknown> | unknown): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}
