import { setTimeout as delay } from 'node:timers/promises';
import type { Request } from 'express';
import {
  type Attendance,
  keepAttending,
  leftForMs,
  newAttendance,
  noteLeft,
  renewEveryMs,
  stopIfUnattended,
} from '../../models/chat/attendance.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { RouteDeps } from '../frame/deps.ts';
import type { CompletionBody } from './conversation.ts';

/** The last chance to notice that the time of a turn is over, after it. */
const slackMs = 100;

/**
 * The attendance of the connection that a request came by: when its client leaves as the last one, the turn stops.
 * Undefined if the client says that it comes back, or can be expected to: it sent an idempotency key.
 */
export function readAttendance(req: Request, { metadata }: Pick<CompletionBody, 'metadata'>): Attendance | undefined {
  const comesBack = req.get('idempotency-key') === undefined ? 'stop' : 'continue';
  const wish = metadata?.on_disconnect ?? req.get('x-on-disconnect') ?? comesBack;
  return wish === 'stop' ? newAttendance() : undefined;
}

/** Extends the time that a turn is attended while a client is connected, and ends it soon after the last one has left. */
export class Attending {
  readonly #deps: RouteDeps;
  readonly #turn: Turn;
  #renewAt = Date.now() + renewEveryMs;

  constructor(deps: RouteDeps, turn: Turn) {
    this.#deps = deps;
    this.#turn = turn;
  }

  /** Call it often: it does nothing most of the time. */
  renew(): void {
    if (Date.now() < this.#renewAt) return;
    this.#renewAt = Date.now() + renewEveryMs;
    keepAttending(this.#deps.database, this.#turn.id).catch((error: unknown) => this.#warn(error));
  }

  /** The client has left. If it was the last one and does not come back within a few seconds, the turn stops. */
  left(): void {
    this.#stopSoon().catch((error: unknown) => {
      // The server is closing. The sweeper stops the turn.
      if (!this.#deps.closing.aborted) this.#warn(error);
    });
  }

  async #stopSoon(): Promise<void> {
    const { database, closing, launcher } = this.#deps;
    const turnId = this.#turn.id;
    if (!(await noteLeft(database, turnId))) return;
    await delay(leftForMs + slackMs, undefined, { signal: closing, ref: false });
    // A worker that is busy with the turn sees the flag in its row; the signal ends a turn that waits.
    if ((await stopIfUnattended(this.#deps, turnId)) === 'stopping') void launcher.stopTurn(turnId);
  }

  #warn(error: unknown): void {
    const { logger } = this.#deps;
    logger.warn({ err: error, turnId: this.#turn.id }, 'The client’s connection could not be noted at its turn.');
  }
}
