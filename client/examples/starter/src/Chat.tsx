import { useChat } from '@ai-sdk/react';
import { AtriumChatTransport, createAtriumClient, visibleParts } from '@atrium/client';
import {
  type ChatTransport,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from 'ai';
import { useEffect, useMemo, useState } from 'react';
import { baseUrl } from './session.ts';

/** Tools of the page itself. The model calls them like any tool, and `onToolCall` answers. */
const clientTools = [
  { name: 'getTimeZone', description: 'The time zone of the user.', inputSchema: { type: 'object' } },
];
/** How many of a chat's last messages to load. */
const messagesLoaded = 50;

function transportFor(token: string): ChatTransport<UIMessage> {
  const isDefault = new URLSearchParams(location.search).get('transport') === 'default';
  return isDefault
    ? new DefaultChatTransport({
        api: `${baseUrl}/chat/stream`,
        headers: { authorization: `Bearer ${token}` },
        body: { clientTools },
      })
    : new AtriumChatTransport({ baseUrl, token, body: { clientTools } });
}

/** Earlier messages of the chat, oldest first. Empty for a new chat. */
async function historyOf(id: string, token: string): Promise<UIMessage[]> {
  const { data } = await createAtriumClient({ baseUrl, token }).GET('/api/threads/{threadId}/messages', {
    params: { path: { threadId: id }, query: { order: 'desc', limit: messagesLoaded } },
  });
  return (data?.data ?? []).toReversed() as unknown as UIMessage[];
}

export function Chat({ id, token }: { id: string; token: string }) {
  const [initial, setInitial] = useState<UIMessage[]>();
  useEffect(() => {
    historyOf(id, token).then(setInitial, () => setInitial([]));
  }, [id, token]);
  return initial === undefined ? <p>Loading …</p> : <LoadedChat id={id} token={token} initial={initial} />;
}

function LoadedChat({ id, token, initial }: { id: string; token: string; initial: UIMessage[] }) {
  const transport = useMemo(() => transportFor(token), [token]);
  const { messages, sendMessage, status, stop, error, addToolOutput } = useChat({
    id,
    messages: initial,
    transport,
    // Resumes an answer that is still running.
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall({ toolCall: { toolName, toolCallId } }) {
      if (toolName !== 'getTimeZone') return;
      const output = Intl.DateTimeFormat().resolvedOptions().timeZone;
      void addToolOutput({ tool: toolName as never, toolCallId, output: output as never });
    },
  });
  const isRunning = status === 'submitted' || status === 'streaming';
  return (
    <>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {visibleParts(message).map((part, index) =>
            // biome-ignore lint/suspicious/noArrayIndexKey: parts have no ids, and are only added to
            part.type === 'text' ? <p key={index}>{part.text}</p> : null,
          )}
        </article>
      ))}
      {error !== undefined && <p role="alert">{error.message}</p>}
      <form action={(form) => sendMessage({ text: String(form.get('text')) })}>
        <textarea name="text" aria-label="Message" rows={3} required />
        <button type="submit">Send</button>
        <button type="button" onClick={() => void stop()} disabled={!isRunning}>
          Stop
        </button>
        <output>{status}</output>
      </form>
    </>
  );
}
