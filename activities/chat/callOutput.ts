import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { WriterFencedError } from '../../models/chat/turnLog/entry.ts';
import { transaction } from '../../models/database/database.ts';
import type { StreamRedactor } from '../../telemetry/streamRedactor.ts';
import type { LiveOutput } from '../tools/tool.ts';
import type { ChatDeps } from './deps.ts';

type Stream = Parameters<LiveOutput['show']>[0];
type OutputChunk = Extract<UiChunk, { type: 'data-tool-output' }>;

/** How much of one call's output the stream shows; the result has more. */
const maxCharacters = 256 * 1_024;
/** The shortest time between two writes of a continuing output. */
const paceMs = 100;
/** If more pieces than this wait, they are joined, one for each stream: each piece costs a place in the turn's log. */
const maxPieces = 8;

interface Shown {
  stream: Stream;
  text: string;
  position: number;
}

/**
 * Writes a call's output to its turn's log, without secrets. Output that arrives during a commit goes into the next
 * one. Output is shown on a best-effort basis: while the database is unreachable, the output is lost and the call goes
 * on.
 */
export class CallOutput implements LiveOutput {
  readonly #deps: Pick<ChatDeps, 'database' | 'turnLog' | 'secrets' | 'logger'>;
  readonly #call: Pick<ToolCall, 'id' | 'turnId'>;
  readonly #spaceId: string;
  #redactors: Promise<Map<Stream, StreamRedactor>> | undefined;
  #waiting: Shown[] = [];
  #characters = 0;
  #isOver = false;
  #writing: Promise<void> | undefined;
  #hurry = new AbortController();

  constructor(
    deps: Pick<ChatDeps, 'database' | 'turnLog' | 'secrets' | 'logger'>,
    call: Pick<ToolCall, 'id' | 'turnId'>,
    spaceId: string,
  ) {
    this.#deps = deps;
    this.#call = call;
    this.#spaceId = spaceId;
  }

  async shownUntil(): Promise<number> {
    let position = 0;
    const { id, turnId } = this.#call;
    await this.#deps.turnLog.eachAfter(turnId, 0, (chunk) => {
      if (chunk.type !== 'data-tool-output' || chunk.data.toolCallId !== id) return;
      position = Math.max(position, chunk.data.position);
      this.#characters += chunk.data.text.length;
      this.#isOver ||= chunk.data.isCut === true;
    });
    return position;
  }

  show(stream: Stream, text: string, position: number): void {
    if (this.#isOver) return;
    const last = this.#waiting.at(-1);
    if (last?.stream === stream) Object.assign(last, { text: last.text + text, position });
    else this.#waiting.push({ stream, text, position });
    this.#characters += text.length;
    this.#isOver = this.#characters >= maxCharacters;
    this.#writing ??= this.#write();
  }

  /** Writes the waiting output before the call's result. */
  async end(signal: AbortSignal): Promise<void> {
    this.#hurry.abort();
    await this.#writing;
    if (signal.aborted || this.#redactors === undefined) return;
    const rest = [...(await this.#redactors)].map(([stream, redactor]) => ({ stream, text: redactor.rest() }));
    await this.#append(rest.flatMap(({ stream, text }) => (text === '' ? [] : [this.#chunk(stream, text, 0)])));
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const pieces = joinedByStream(this.#waiting.splice(0));
        const redactors = await this.#redact();
        const chunks = pieces.flatMap(({ stream, text, position }) => {
          const shown = redactors.get(stream)?.push(text) ?? '';
          return shown === '' ? [] : [this.#chunk(stream, shown, position)];
        });
        const last = chunks.at(-1);
        if (this.#isOver && this.#waiting.length === 0 && last !== undefined) last.data.isCut = true;
        await this.#append(chunks);
        await this.#pace();
      }
    } catch (error) {
      const { id: toolCallId, turnId } = this.#call;
      this.#deps.logger.warn({ err: error, turnId, toolCallId }, 'A call’s output could not be shown as it came.');
    } finally {
      this.#writing = undefined;
    }
  }

  #chunk(stream: Stream, text: string, position: number): OutputChunk {
    const data = { toolCallId: this.#call.id, stream, text: text.toWellFormed(), position };
    return { type: 'data-tool-output', transient: true, data };
  }

  async #append(chunks: OutputChunk[]): Promise<void> {
    if (chunks.length === 0) return;
    const { database, turnLog } = this.#deps;
    try {
      turnLog.announce(await transaction(database, (tx) => turnLog.appendIn(tx, this.#call.turnId, chunks)));
    } catch (error) {
      // The turn has ended.
      if (!(error instanceof WriterFencedError)) throw error;
      this.#isOver = true;
    }
  }

  #redact(): Promise<Map<Stream, StreamRedactor>> {
    this.#redactors ??= this.#deps.secrets.redactors.forSpace(this.#spaceId).then((redactor) => {
      const streams: Stream[] = ['stdout', 'stderr', 'pty'];
      return new Map(streams.map((stream) => [stream, redactor.stream()]));
    });
    return this.#redactors;
  }

  #pace(): Promise<void> {
    const { signal } = this.#hurry;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, paceMs);
      signal.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          resolve();
        },
        { once: true },
      );
    });
  }
}

function joinedByStream(pieces: Shown[]): Shown[] {
  if (pieces.length <= maxPieces) return pieces;
  const streams = Map.groupBy(pieces, ({ stream }) => stream);
  return [...streams].map(([stream, own]) => ({
    stream,
    text: own.map(({ text }) => text).join(''),
    position: Math.max(...own.map(({ position }) => position)),
  }));
}
