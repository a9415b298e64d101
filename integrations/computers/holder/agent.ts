import { connect } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { untilAborted } from '../../../base/async.ts';
import { DomainError, type DomainErrorKind } from '../../../base/errors.ts';
import { databasePort } from '../../egress/databaseNames.ts';
import type { AgentRequest, HolderRequest } from '../protocol/agentRequests.ts';
import { Channel } from '../protocol/channel.ts';
import { type ChannelStream, join } from '../protocol/channelStream.ts';
import { ChannelViolation } from '../protocol/frames.ts';
import { connectionLost, notAnswering } from '../protocol/holderHttp.ts';
import { readAnswer } from '../protocol/messages.ts';

/** How many connections may leave the computer at once. */
const maxEgressStreams = 256;
/** Ports served for programs that do not use the proxy. */
const relayedPorts = [22, 80, 443, databasePort];

interface AgentOptions {
  egressSocket: string | null;
  onReady: () => void;
  /** The channel has ended, and the computer with it. */
  onEnd: (reason: Error) => void;
}

/**
 * The agent in the sandbox, as the holder sees it. The tenant may have replaced the agent, so every answer is checked
 * and bounded, and none is trusted for more than it says.
 */
export class Agent {
  readonly #channel: Channel;
  readonly #ready = Promise.withResolvers<void>();
  readonly #hasNetwork: boolean;
  #isReady = false;

  constructor(output: Readable, input: Writable, { egressSocket, onReady, onEnd }: AgentOptions) {
    this.#ready.promise.catch(() => undefined);
    this.#channel = new Channel(output, input, {
      side: 'holder',
      maxStreams: maxEgressStreams,
      maxOpenBytes: 1_024,
      onOpen: (request) => {
        const kind = (request as Partial<HolderRequest> | null)?.kind;
        if (kind === 'egress' && egressSocket !== null) {
          return (stream) => join(stream, connect({ path: egressSocket, allowHalfOpen: true }));
        }
        if (kind !== 'ready' || this.#isReady) return undefined;
        this.#isReady = true;
        onReady();
        this.#ready.resolve();
        return (stream) => stream.resume().end();
      },
      onEnd: (reason) => {
        this.#ready.reject(reason);
        onEnd(reason);
      },
    });
    this.#hasNetwork = egressSocket !== null;
  }

  /** Tells the agent to open the network. Later requests find it open. */
  openNetwork(): void {
    if (!this.#hasNetwork) return;
    this.#channel
      .open({ kind: 'network', ports: relayedPorts, maxConnections: maxEgressStreams } satisfies AgentRequest)
      .resume()
      .end();
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Resolves when the agent takes requests. Rejects if it ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  end(reason: Error): void {
    this.#channel.end(reason);
  }

  /**
   * Opens a stream and waits for the answer at its start. The rest stays in the stream, which the caller ends or
   * destroys. Throws the agent's refusal, and 504 if the agent does not answer.
   */
  async open<T>(
    request: AgentRequest,
    { deadlineMs, signal, send }: { deadlineMs: number; signal?: AbortSignal; send?: (stream: ChannelStream) => void },
  ): Promise<{ stream: ChannelStream; answer: T }> {
    const deadline = AbortSignal.timeout(deadlineMs);
    const either = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
    const failure = () => (either.aborted ? notAnswering() : connectionLost());
    await untilAborted(this.ready, either).catch(() => Promise.reject(failure()));
    const stream = this.#channel.open(request);
    const stop = () => stream.destroy();
    either.addEventListener('abort', stop, { once: true });
    try {
      if (send === undefined) stream.end();
      else send(stream);
      const answer = await readAnswer(stream);
      if (answer === undefined) throw failure();
      const refused = (answer as { refused?: unknown } | null)?.refused;
      if (refused !== undefined) throw refusalOf(String(refused));
      return { stream, answer: answer as T };
    } catch (error) {
      stream.destroy();
      if (error instanceof ChannelViolation) this.end(error);
      throw error;
    } finally {
      either.removeEventListener('abort', stop);
    }
  }

  /** Sends a request whose stream carries nothing after the answer. */
  async ask<T>(request: AgentRequest, { deadlineMs }: { deadlineMs: number }): Promise<T> {
    const { stream, answer } = await this.open<T>(request, { deadlineMs });
    stream.resume();
    return answer;
  }
}

/** The agent's refusals, and the errors that callers get for them. */
const refusals: Record<string, [DomainErrorKind, string]> = {
  CWD_NOT_FOUND: ['unprocessable', 'The working folder does not exist.'],
  USER_NOT_FOUND: ['unprocessable', 'The computer has no user of the name that its environment sets.'],
  FILES_CHANGED: ['conflict', 'A file of the program has another content than it must have.'],
  COMMAND_NOT_FOUND: ['unprocessable', 'The program does not exist.'],
  COMMAND_NOT_STARTED: ['unprocessable', 'The program cannot be started.'],
  COMMAND_TOO_LONG: ['unprocessable', 'The command and its variables are too long.'],
  TOO_MANY_TASKS: ['rateLimited', 'The computer runs as many tasks as it may, or has no memory left.'],
  PROCESS_ENDED: ['conflict', 'The process has ended.'],
  PORT_NOT_LISTENING: ['upstream', 'Nothing listens on this port of the computer.'],
  SOCKET_NOT_LISTENING: ['upstream', 'Nothing listens on this socket of the computer.'],
  PATH_INVALID: ['unprocessable', 'The path is invalid.'],
  FILE_NOT_FOUND: ['notFound', 'There is no such file or folder.'],
  FILE_ACCESS_DENIED: ['forbidden', 'The computer’s user may not do this with the file.'],
  FILE_EXISTS: ['conflict', 'There is a file or folder of this name.'],
  FOLDER_NOT_EMPTY: ['conflict', 'The folder is not empty.'],
  NOT_A_FILE: ['unprocessable', 'This is not a regular file.'],
  DISK_FULL: ['unprocessable', 'The computer’s disk is full.'],
  RANGE_NOT_SATISFIABLE: ['rangeNotSatisfiable', 'The file ends before the requested range.'],
  PRECONDITION_FAILED: ['preconditionFailed', 'The file has been changed or exists already.'],
};

export function refusalOf(code: string): DomainError {
  const refusal = refusals[code];
  if (refusal === undefined) return new DomainError('upstream', 'COMPUTER_FAILED', 'The computer could not do this.');
  return new DomainError(refusal[0], code, refusal[1]);
}
