import type { Request, Response } from 'express';
import type { Attendance } from '../../models/chat/attendance.ts';
import type { Message } from '../../models/chat/message.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { mayStillRead } from '../chat/authorizeThread.ts';
import { partsAsChunks } from '../chat/replayMessage.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { whenClosed } from '../frame/goneOf.ts';
import { Attending } from './attendance.ts';

/** How often a turn that waits for a person is checked. */
const waitingLookMs = 1_000;

/** The part of a turn that one answer covers. */
export interface Telling {
  turn: Turn;
  /** The answer begins strictly after this chunk. */
  after: number;
  /** The log's first chunks, if this request has just begun the turn. */
  opening?: readonly UiChunk[] | undefined;
  /** Set if the turn stops when the client leaves. */
  attendance?: Attendance | undefined;
}

export interface Listener {
  /** True for the chunk that ends the answer. */
  onChunk(chunk: UiChunk): boolean;
  /** Resolves when there is room for more chunks from the log. */
  ready?(): Promise<void>;
  /** Everything up to this chunk was delivered. */
  onEnd(seq: number): void;
  /** The log could not be read. */
  onError(error: unknown): void;
  /** The server is closing, or the caller may no longer read the turn. The turn itself continues. */
  onLeave(): void;
}

/**
 * Delivers a turn to a listener until the answer ends or its client disconnects. While the turn waits for a person's
 * approval, the answer waits too.
 */
export function followTurn(
  deps: RouteDeps,
  req: Request,
  res: Response,
  { turn, after, opening = [], attendance }: Telling,
  listener: Listener,
): void {
  const caller = callerOf(req);
  const attending = attendance && new Attending(deps, turn);
  let position = after + opening.length;
  let isOver = false;
  let unsubscribe = () => {};
  let look: NodeJS.Timeout | undefined;
  const watch = setInterval(() => void leaveUnlessAllowed(), deps.config.chat.streams.authorizationMs);
  deps.closing.addEventListener('abort', breakOff);
  whenClosed(res, () => {
    if (!isOver) attending?.left();
    leave();
  });
  if (!tell(opening)) subscribe(opening.length > 0);

  function tell(chunks: Iterable<UiChunk>): boolean {
    for (const chunk of chunks) {
      if (isOver) return true;
      if (!listener.onChunk(chunk)) continue;
      leave();
      listener.onEnd(position);
      return true;
    }
    return false;
  }

  function subscribe(caughtUp: boolean): void {
    if (isOver) return;
    unsubscribe = deps.feed.subscribe(
      turn.id,
      position,
      {
        onChunks(firstSeq, lines) {
          position = firstSeq + lines.length - 1;
          tell(lines.map((line) => JSON.parse(line) as UiChunk));
        },
        ready: () => listener.ready?.() ?? Promise.resolve(),
        onEnd() {
          if (!isOver) look = setTimeout(subscribe, waitingLookMs, false);
        },
        onError(error) {
          leave();
          listener.onError(error);
        },
      },
      { caughtUp },
    );
  }

  function leave(): void {
    isOver = true;
    unsubscribe();
    deps.closing.removeEventListener('abort', breakOff);
    clearInterval(watch);
    clearTimeout(look);
  }

  function breakOff(): void {
    leave();
    listener.onLeave();
  }

  async function leaveUnlessAllowed(): Promise<void> {
    if (!isOver) attending?.renew();
    // If the database is down for a moment, the next check decides.
    if (!isOver && !(await mayStillRead(deps, caller, turn).catch(() => true)) && !isOver) breakOff();
  }
}

/** Like {@link followTurn}, for an ended turn whose log has been purged. Reads the stored message. */
export async function recallTurn(deps: RouteDeps, { turn }: Telling, listener: Listener): Promise<void> {
  const { Message } = chatModels(deps.database);
  const message: Message | null = await Message.find(turn.threadId, turn.assistantMessageId);
  for (const chunks of partsAsChunks(turn, message)) {
    for (const chunk of chunks) if (listener.onChunk(chunk)) return listener.onEnd(turn.nextSeq - 1);
    await listener.ready?.();
  }
}
