import type { Environment } from '../../config/index.ts';
import { hurriedSweeper } from './productSettings.ts';
import { sweepNow } from './runServer.ts';

const intervalMs = 2_000;

const hurried = new Set<string>();
let lastMs = Number.NEGATIVE_INFINITY;

/** Has the sweeper of this installation come while a test waits, where its settings say so. Returns how to end that. */
export function hurryWhileWaiting({ ATRIUM_INSTALLATION: name = '', ...settings }: Environment): () => void {
  const { ATRIUM_SWEEP_INTERVAL_SECONDS: interval } = hurriedSweeper;
  if (settings.ATRIUM_SWEEP_INTERVAL_SECONDS === interval) hurried.add(name);
  return () => void hurried.delete(name);
}

/** A test still waits. Sweeps now, unless that was done a moment ago. */
export async function hurry(): Promise<void> {
  if (hurried.size === 0 || performance.now() - lastMs < intervalMs) return;
  lastMs = performance.now();
  await Promise.all([...hurried].map(sweepNow));
}
