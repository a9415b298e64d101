import type { CompletionBody, Conversation } from './conversation.ts';

/**
 * The first words of requests that chat programs send beside a chat, for a title, tags or further questions. They carry
 * no mark, so they are recognised by their templates: those of Open WebUI, opencode, Continue and LibreChat.
 */
const firstWords: readonly RegExp[] = [
  // Open WebUI's template for a question about a document begins likewise.
  /^### Task:\n(?!Respond to the user query\b)/,
  /^Generate a title for this conversation:/i,
  /^Given the following\b.{0,40}\bplease reply with a title for the chat\b/i,
  /^(?:Please )?(?:provide|generate) a concise, 5-word-or-less title for the conversation\b/i,
  /^Analyze this conversation and provide:\s+1\. The detected language\b/i,
];
const instructions = /^You are a title generator\b/i;

/** Whether the request is such a helper call. It becomes no part of a chat, whatever thread it names. */
export function isHelperCall(conversation: Conversation, { tools }: Pick<CompletionBody, 'tools'>): boolean {
  const { history, news, results } = conversation;
  if (history.length > 0 || results.length > 0 || (tools?.length ?? 0) > 0) return false;
  if (instructions.test(conversation.instructions?.trimStart() ?? '')) return true;
  const [first] = news;
  return first?.type === 'text' && firstWords.some((words) => words.test(first.text.trimStart()));
}
