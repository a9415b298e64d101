/** Messages between processes that a turn's log has grown. They are hints: only the database knows the log. */
export interface CommitNotices {
  /** Tells all processes soon, and at most once. Neither waits nor fails. */
  tell(turnId: string, lastSeq: number): void;
  /** Whether recent notices arrived. */
  readonly areHeard: boolean;
  /** Begins to listen. */
  listen(listener: NoticeListener): void;
}

export interface NoticeListener {
  onNotice(turnId: string, lastSeq: number): void;
  /** `areHeard` has changed. */
  onChange(): void;
}

const distrustMs = 60_000;
/** How late after its commit a notice may still arrive. */
const patienceMs = 500;

/**
 * Detects lost notices. If a check of the log finds a commit that no notice reported, that notice is expected. If it
 * has not come by the next such check, notices get lost, and they are not relied on for a minute.
 */
export class NoticeTrust {
  readonly #heard = new Map<string, number>();
  readonly #missed = new Map<string, { lastSeq: number; sinceMs: number }>();
  #distrustedUntilMs = 0;

  get isGiven(): boolean {
    return performance.now() >= this.#distrustedUntilMs;
  }

  heard(turnId: string, lastSeq: number): void {
    this.#heard.set(turnId, Math.max(lastSeq, this.#heard.get(turnId) ?? 0));
    if ((this.#missed.get(turnId)?.lastSeq ?? Number.POSITIVE_INFINITY) <= lastSeq) this.#missed.delete(turnId);
  }

  /**
   * Call before a check that does not rely on notices. A notice that is still missing after the patience time is lost.
   */
  beginLook(): void {
    const now = performance.now();
    for (const [turnId, { sinceMs }] of this.#missed) {
      if (now - sinceMs < patienceMs) continue;
      this.#distrustedUntilMs = now + distrustMs;
      this.#missed.delete(turnId);
    }
  }

  /** Call when such a check has found the log at `lastSeq`. */
  found(turnId: string, lastSeq: number): void {
    if ((this.#heard.get(turnId) ?? 0) >= lastSeq || this.#missed.has(turnId)) return;
    this.#missed.set(turnId, { lastSeq, sinceMs: performance.now() });
  }

  /** The turn has no reader any more. */
  forget(turnId: string): void {
    this.#heard.delete(turnId);
  }
}
