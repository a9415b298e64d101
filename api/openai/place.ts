import type { Request } from 'express';
import type { TurnMode } from '../../models/chat/turn.ts';
import type { CompletionBody, Conversation } from './conversation.ts';

/** Where a completion belongs, and what it may do there. */
export interface Place {
  /** A thread's id, or a chat id of the client's own making. */
  thread: string | undefined;
  spaceId: string | undefined;
  mode: TurnMode;
  /** The model is offered no tools of the space. */
  ownToolsOnly: boolean;
  /** A thread that is made for it stays, and is in its owner's list. */
  isKept: boolean;
}

/** What the metadata says, else the headers, which the contract has checked. */
export function readPlace(req: Request, { metadata, store }: CompletionBody, conversation: Conversation): Place {
  const { thread_id, space_id, mode, server_tools } = metadata ?? {};
  const isAside = isTask(conversation);
  const thread = isAside ? undefined : (thread_id ?? req.get('x-thread-id'));
  return {
    thread,
    spaceId: space_id ?? req.get('x-space-id'),
    mode: mode ?? (req.get('x-mode') as TurnMode | undefined) ?? 'ask',
    ownToolsOnly: isAside || (server_tools ?? req.get('x-server-tools')) === 'off',
    isKept: thread !== undefined || (store !== false && !isAside),
  };
}

/**
 * Whether it is what Open WebUI asks beside a chat: for its title, its tags, what to ask next. By its own API it says
 * so; what reaches us are these first words, with which its templates begin.
 */
function isTask({ history, news }: Conversation): boolean {
  const [first, ...more] = news;
  return history.length === 0 && more.length === 0 && first?.type === 'text' && first.text.startsWith('### Task:\n');
}
