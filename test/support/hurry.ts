import type { Environment } from '../../config/index.ts';
import { hurriedSweeper } from './productSettings.ts';
import { sweepNow } from './runServer.ts';

const intervalMs = 2_000;

const hurried = new Set<string>();
let lastMs = Number.NEGATIVE_INFINITY;

/**
 * Runs this installation's sweeper more often while a test waits, if its settings ask for that. Returns a function that
 * ends it.
 */
export function hurryWhileWaiting({ ATRIUM_INSTALLATION: name = '', ...settings }: Environment): () => void {
  const { ATRIUM_SWEEP_INTERVAL_SECONDS: interval } = hurriedSweeper;
  if (settings.ATRIUM_SWEEP_INTERVAL_SECONDS === interval) hurried.add(name);
  return () => void hurried.delete(name);
}

/** Called while a test waits. Sweeps now, unless it did so a moment ago. */
export async function hurry(): Promise<void> {
  if (hurried.size === 0 || performance.now() - lastMs < intervalMs) return;
  lastMs = performance.now();
  await Promise.all([...hurried].map(sweepNow));
}
