import type { LanguageModelV4Prompt } from '@ai-sdk/provider';

type Message = LanguageModelV4Prompt[number];
type ToolMessage = Extract<Message, { role: 'tool' }>;
type UserContent = Extract<Message, { role: 'user' }>['content'];

/**
 * Chat completions have text alone in the results of tools, so the pictures in them follow as a user’s message, each
 * with the call that it belongs to.
 */
export function withPicturesBehind(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  return prompt.flatMap((message): Message[] => {
    if (message.role !== 'tool') return [message];
    const pictures: UserContent = [];
    const content = message.content.map((part) => withoutPictures(part, pictures));
    if (pictures.length === 0) return [message];
    return [
      { ...message, content },
      { role: 'user', content: pictures },
    ];
  });
}

function withoutPictures(part: ToolMessage['content'][number], pictures: UserContent): ToolMessage['content'][number] {
  if (part.type !== 'tool-result' || part.output.type !== 'content') return part;
  const texts: string[] = [];
  for (const piece of part.output.value) {
    if (piece.type === 'text') texts.push(piece.text);
    if (piece.type !== 'file') continue;
    const { mediaType, data } = piece;
    pictures.push({ type: 'text', text: `[The picture in the result of ${part.toolName}, call ${part.toolCallId}]` });
    pictures.push({ type: 'file', mediaType, data });
  }
  return { ...part, output: { type: 'text', value: texts.join('\n') } };
}
