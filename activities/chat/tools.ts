import type { Turn } from '../../models/chat/turn.ts';

/** A tool that runs on the server. It is run again after a crash, so it must be idempotent by `toolCallId`. */
export interface Tool {
  /** `input` has secrets in place of their references. What it gives back, or throws as a DomainError, is redacted and shown. */
  run(input: unknown, context: ToolContext): Promise<unknown>;
}

export interface ToolContext {
  turn: Turn;
  toolCallId: string;
  /** Aborted when the turn stops or the worker does. */
  signal: AbortSignal;
}

/** Tools by the name that models call them. */
export type Tools = ReadonlyMap<string, Tool>;
