import { parentPort, workerData } from 'node:worker_threads';
import { trimPack } from './packTrim.ts';

/** A thread that cuts one pack and says what is left of it. */
const { path, lookMs } = workerData as { path: string; lookMs: number };
parentPort?.postMessage(await trimPack(path, { untilMs: performance.now() + lookMs }));
