import type { Request } from 'express';
import type { TurnMode } from '../../models/chat/turn.ts';
import type { CompletionBody } from './conversation.ts';

/** Where a completion belongs, and what it may do there. */
export interface Place {
  /** A thread's id, or a chat id of the client's own making. */
  thread: string | undefined;
  spaceId: string | undefined;
  mode: TurnMode;
  /** The model is offered no tools of the space. */
  ownToolsOnly: boolean;
}

/** What the metadata says, else the headers, which the contract has checked. */
export function readPlace(req: Request, { metadata }: CompletionBody): Place {
  const { thread_id, space_id, mode, server_tools } = metadata ?? {};
  return {
    thread: thread_id ?? req.get('x-thread-id'),
    spaceId: space_id ?? req.get('x-space-id'),
    mode: mode ?? (req.get('x-mode') as TurnMode | undefined) ?? 'ask',
    ownToolsOnly: (server_tools ?? req.get('x-server-tools')) === 'off',
  };
}
