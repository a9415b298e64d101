import { randomBytes } from 'node:crypto';
import { lookUntil } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { FileContent, HostClient } from '../../computers/hostClient.ts';
import { collectOutput } from '../../computers/output/collectOutput.ts';
import { OwnProgram } from '../../computers/processes/ownProgram.ts';
import { exitCodes, filePath, finishRequest, partPath, type RecorderSpec, recordRequest } from './scripts.ts';

/** `forMs` is how long the recorder may take until its first picture. */
const startPatience = { firstMs: 20, mostMs: 250, forMs: 15_000 };
/** How long the recorder may take to finish its file once it is told to stop. */
const stopMs = 10_000;
const maxAnswerBytes = 4_096;

/** Why a recorder has ended. */
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

/** The program that records a desktop on a computer, and the file that it writes there. */
export class Recorder {
  readonly #client: HostClient;
  readonly #spec: RecorderSpec;
  readonly #program: OwnProgram;

  constructor(client: HostClient, spec: RecorderSpec) {
    this.#client = client;
    this.#spec = spec;
    this.#program = new OwnProgram(client, spec.id);
  }

  /**
   * Starts the recorder unless it runs, and settles when its file is no longer empty. Throws 422
   * `RECORDING_UNAVAILABLE` when the computer has no ffmpeg, and 502 `RECORDING_NOT_STARTED`.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#client.own.startProcess(recordRequest(this.#spec));
    const look = async () => {
      if (await this.#hasBegun()) return 'begun';
      const { state, exitCode } = await this.#client.own.process(this.#spec.id);
      if (exitCode === exitCodes.missingProgram) throw unavailable();
      if (state === 'running') return 'starting';
      // A recorder that has ended has just written its file, or never will.
      return (await this.#hasBegun()) ? 'begun' : 'ended';
    };
    const seen = await lookUntil(look, (state) => state !== 'starting', { ...startPatience, signal });
    if (seen === 'begun') return;
    throw new DomainError('upstream', 'RECORDING_NOT_STARTED', 'The recording could not be started.');
  }

  /** Why the recorder has ended, as far as its computer knows; undefined while it runs. */
  async end(): Promise<RecorderEnd | undefined> {
    const { state, exitCode } = (await this.#program.info()) ?? {};
    return state === 'running' ? undefined : (ends[exitCode ?? -1] ?? 'RECORDER_ENDED');
  }

  /** Stops the recorder and settles when it has ended. It may finish its file first, if that does not take long. */
  async stop(): Promise<RecorderEnd> {
    if (await this.#program.isAlive()) {
      await this.#program.signal('SIGTERM');
      await this.#program.untilEnded(AbortSignal.timeout(stopMs)).catch((error: unknown) => {
        if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
      });
      await this.#program.kill(notEnding);
    }
    return (await this.end()) ?? 'RECORDER_ENDED';
  }

  /**
   * Makes the final file, on a running or a stopped computer, and returns its duration. A second call returns the same.
   * Throws 404 `RECORDING_LOST`, 422 `RECORDING_EMPTY` or `RECORDING_UNAVAILABLE`.
   */
  async finish(signal: AbortSignal): Promise<{ durationMs: number }> {
    // The recorder is still running if its host was given up and has come back.
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
      await own.signalProcess(processId, 'SIGKILL').catch(() => undefined); // It has usually ended.
      await own.forgetProcess(processId).catch(() => undefined); // Otherwise the host prunes it later.
    }
  }

  /** The finished file. Throws 404 `FILE_NOT_FOUND`. */
  read(signal: AbortSignal): Promise<FileContent> {
    return this.#client.readFile(filePath(this.#spec), { signal });
  }

  /** Stops the recorder and removes its files from the computer. */
  async remove(): Promise<void> {
    await this.stop();
    for (const path of [partPath(this.#spec), filePath(this.#spec)]) {
      await this.#client.clearPath(path);
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

/** The duration that the computer reports. Its tenant could have made it up, so it is only read as a number. */
function durationOf(exitCode: number | null | undefined, said: string): number {
  if (exitCode === exitCodes.missingProgram) throw unavailable();
  if (exitCode === exitCodes.noFile) {
    throw new DomainError('notFound', 'RECORDING_LOST', 'The recorded file is no longer on the computer.');
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
  const detail = 'This computer has no ffmpeg. The operator installs it as docs/desktops.md says.';
  return new DomainError('unprocessable', 'RECORDING_UNAVAILABLE', detail);
}

function notEnding(): DomainError {
  return new DomainError('upstreamTimeout', 'RECORDING_NOT_ENDING', 'The recorder is still running.');
}
