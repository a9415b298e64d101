import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import { collectOutput } from '../../computers/collectOutput.ts';
import type { FileContent, HostClient } from '../../computers/hostClient.ts';
import { exitCodes, filePath, finishRequest, partPath, type RecorderSpec, recordRequest } from './scripts.ts';

const firstLookMs = 20;
const longestLookMs = 250;
/** How long it may take to its first picture. */
const startMs = 15_000;
/** How long it may take to its file's end once it is to stop. */
const stopMs = 10_000;
const killMs = 10_000;
const maxAnswerBytes = 4_096;

/** What has become of what records: undefined while it runs, else why it has ended. */
export type RecorderEnd =
  | 'RECORDING_STOPPED'
  | 'SECONDS_REACHED'
  | 'BYTES_REACHED'
  | 'X_SERVER_ENDED'
  | 'RECORDER_ENDED';

const ends: Readonly<Record<number, RecorderEnd>> = {
  [exitCodes.stopped]: 'RECORDING_STOPPED',
  [exitCodes.seconds]: 'SECONDS_REACHED',
  [exitCodes.bytes]: 'BYTES_REACHED',
  [exitCodes.displayGone]: 'X_SERVER_ENDED',
};

/** What records a desktop on a computer, and the file that it writes there. */
export class Recorder {
  readonly #client: HostClient;
  readonly #spec: RecorderSpec;

  constructor(client: HostClient, spec: RecorderSpec) {
    this.#client = client;
    this.#spec = spec;
  }

  /**
   * Starts it, unless it runs, and settles when its file has something in it. Throws 422 `RECORDING_UNAVAILABLE` where
   * the computer has no ffmpeg, 502 `RECORDING_NOT_STARTED`.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#client.own.startProcess(recordRequest(this.#spec));
    const deadline = performance.now() + startMs;
    for (let waitMs = firstLookMs; ; waitMs = Math.min(waitMs * 1.4, longestLookMs)) {
      if (await this.#hasBegun()) return;
      const { state, exitCode } = await this.#client.own.process(this.#spec.id);
      if (exitCode === exitCodes.missingProgram) throw unavailable();
      // One that has ended has written its file meanwhile, or never will.
      if (state !== 'running' && (await this.#hasBegun())) return;
      if (state !== 'running' || performance.now() > deadline) throw notStarted();
      await delay(waitMs, undefined, { signal });
    }
  }

  /** Why it has ended, as far as its computer knows; undefined while it runs. */
  async end(): Promise<RecorderEnd | undefined> {
    try {
      const { state, exitCode } = await this.#client.own.process(this.#spec.id);
      if (state === 'running') return undefined;
      return ends[exitCode ?? -1] ?? 'RECORDER_ENDED';
    } catch (error) {
      if (error instanceof DomainError && error.code === 'PROCESS_NOT_FOUND') return 'RECORDER_ENDED';
      throw error;
    }
  }

  /** Ends it, with its file as it should be where that does not take long; settles when it has ended. */
  async stop(): Promise<RecorderEnd> {
    const { own } = this.#client;
    const begun = performance.now();
    let sent: string | undefined;
    for (;;) {
      const end = await this.end();
      if (end !== undefined) return end;
      const passedMs = performance.now() - begun;
      if (passedMs > stopMs + killMs) {
        throw new DomainError('upstreamTimeout', 'RECORDING_NOT_ENDING', 'It records still.');
      }
      const signal = passedMs > stopMs ? 'SIGKILL' : 'SIGTERM';
      if (signal !== sent) await own.signalProcess(this.#spec.id, signal).catch(whereEnded);
      sent = signal;
      await delay(firstLookMs);
    }
  }

  /**
   * Makes a file of what was written, on a computer that runs or not, and tells how long it is. Done again, it tells the
   * same. Throws 404 `RECORDING_LOST`, 422 `RECORDING_EMPTY` or `RECORDING_UNAVAILABLE`.
   */
  async finish(signal: AbortSignal): Promise<{ durationMs: number }> {
    // One on a host that was given up, and has come back, runs still.
    await this.stop();
    const { own } = this.#client;
    const processId = `${this.#spec.id}-${randomBytes(6).toString('hex')}`;
    await own.startProcess(finishRequest(this.#spec, processId));
    try {
      const records = own.output(processId, { follow: true, signal });
      const { stdout, exit } = await collectOutput(records, { maxBytes: maxAnswerBytes });
      signal.throwIfAborted();
      return { durationMs: durationOf(exit?.exitCode, stdout) };
    } finally {
      await own.signalProcess(processId, 'SIGKILL').catch(() => undefined); // it has ended
      await own.forgetProcess(processId).catch(() => undefined); // it is pruned later
    }
  }

  /** The file, once it is finished. Throws 404 `FILE_NOT_FOUND`. */
  read(signal: AbortSignal): Promise<FileContent> {
    return this.#client.readFile(filePath(this.#spec), { signal });
  }

  /** Leaves nothing of it on the computer. */
  async remove(): Promise<void> {
    await this.stop();
    for (const path of [partPath(this.#spec), filePath(this.#spec)]) {
      await this.#client.deleteFile(path).catch((error: unknown) => {
        const codes = ['FILE_NOT_FOUND', 'NOT_A_FOLDER'];
        if (!(error instanceof DomainError) || !codes.includes(error.code)) throw error;
      });
    }
  }

  async #hasBegun(): Promise<boolean> {
    try {
      return (await this.#client.statFile(partPath(this.#spec))).size > 0;
    } catch (error) {
      if (error instanceof DomainError && error.kind === 'notFound') return false;
      throw error;
    }
  }
}

/** What the computer says is its tenant’s word: a number, or nothing. */
function durationOf(exitCode: number | null | undefined, said: string): number {
  if (exitCode === exitCodes.missingProgram) throw unavailable();
  if (exitCode === exitCodes.noFile) {
    throw new DomainError('notFound', 'RECORDING_LOST', 'What was recorded is no longer on the computer.');
  }
  const seconds = Number.parseFloat(said);
  if (exitCode === exitCodes.noPicture || (exitCode === exitCodes.stopped && !(seconds > 0))) {
    throw new DomainError('unprocessable', 'RECORDING_EMPTY', 'The recording has no picture.');
  }
  if (exitCode !== exitCodes.stopped) {
    throw new DomainError('upstream', 'RECORDING_NOT_FINISHED', 'The file of the recording could not be finished.');
  }
  return Math.min(Math.round(seconds * 1_000), Number.MAX_SAFE_INTEGER);
}

function unavailable(): DomainError {
  const detail = 'This computer has no ffmpeg: its operator installs it, and what docs/desktops.md names.';
  return new DomainError('unprocessable', 'RECORDING_UNAVAILABLE', detail);
}

function notStarted(): DomainError {
  return new DomainError('upstream', 'RECORDING_NOT_STARTED', 'The recording could not be started.');
}

function whereEnded(error: unknown): void {
  const codes = ['PROCESS_ENDED', 'PROCESS_NOT_FOUND'];
  if (!(error instanceof DomainError) || !codes.includes(error.code)) throw error;
}
