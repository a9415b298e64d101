/**
 * Word from process to process that a turn's log has grown. It is a hint: what the log says is in the database alone.
 */
export interface CommitNotices {
  /** Tells all processes, soon and at most once. Never waits, never fails. */
  tell(turnId: string, lastSeq: number): void;
  /** Whether what was told lately has been heard. */
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
/** How much later than its commit a notice may come. */
const patienceMs = 500;

/**
 * * Whether the notices that come are all there are. A look at the log that finds a commit of which nobody has told
 * expects its notice; when that has not come until the next such look, notices are lost on their way, and nobody relies
 * on them for a minute.
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

  /** A look begins that asks no notice what there is. Whatever was expected for long should be here by now. */
  beginLook(): void {
    const now = performance.now();
    for (const [turnId, { sinceMs }] of this.#missed) {
      if (now - sinceMs < patienceMs) continue;
      this.#distrustedUntilMs = now + distrustMs;
      this.#missed.delete(turnId);
    }
  }

  /** Such a look has found the log at `lastSeq`. */
  found(turnId: string, lastSeq: number): void {
    if ((this.#heard.get(turnId) ?? 0) >= lastSeq || this.#missed.has(turnId)) return;
    this.#missed.set(turnId, { lastSeq, sinceMs: performance.now() });
  }

  /** Nobody reads the turn any more. */
  forget(turnId: string): void {
    this.#heard.delete(turnId);
  }
}
