import { createInterface } from 'node:readline/promises';
import type { UIMessage } from 'ai';
import { AtriumChatTransport, createAtriumClient } from '../src/index.ts';

/**
 * A chat in a terminal: `node client/examples/chat.ts http://localhost:8080 TOKEN [MODEL]`. The answer goes on even if
 * you restart the server in the middle of it. `npm run -s atrium -- token` prints a token.
 */
const [baseUrl = 'http://localhost:8080', token = '', modelId] = process.argv.slice(2);
const connection = { baseUrl, token };

const { data: models, error } = await createAtriumClient(connection).GET('/chat/models');
if (models === undefined) throw new Error(error.detail);
process.stdout.write(`Models: ${models.models.map(({ id }) => id).join(', ')}\n`);

const transport = new AtriumChatTransport({ ...connection, ...(modelId !== undefined && { body: { modelId } }) });
const chatId = crypto.randomUUID();
// Does not use readline's own prompt: at the end of input, readline closes while the last line is still being answered.
const prompt = () => process.stdout.write('> ');
prompt();
for await (const text of createInterface({ input: process.stdin })) {
  if (text.trim() !== '') await ask(text);
  prompt();
}

async function ask(text: string): Promise<void> {
  const message: UIMessage = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] };
  const options = { chatId, messages: [message], messageId: undefined, abortSignal: undefined };
  const stream = await transport.sendMessages({ ...options, trigger: 'submit-message' });
  for await (const chunk of stream) {
    if (chunk.type === 'text-delta') process.stdout.write(chunk.delta);
    if (chunk.type === 'error') process.stdout.write(`\n[${chunk.errorText}]`);
  }
  process.stdout.write('\n');
}
