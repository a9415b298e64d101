import { type ClientTool, objectSchema } from '../tool.ts';

const weekMs = 7 * 86_400_000;

/** A question to the person; their client shows it and sends the answer as the tool's result. */
export const askUserTool: ClientTool = {
  runs: 'client',
  name: 'ask_user',
  description:
    'Asks the user a question and waits for the answer. Use it when you cannot go on without a decision that only the user can make.',
  access: 'read',
  role: 'viewer',
  scope: 'chat',
  deadlineMs: weekMs,
  inputSchema: objectSchema(
    {
      question: { type: 'string', minLength: 1, maxLength: 4_000 },
      options: {
        type: 'array',
        maxItems: 10,
        items: { type: 'string', minLength: 1, maxLength: 200 },
        description: 'Answers to choose from. The user can also write another answer.',
      },
    },
    ['question'],
  ),
};
