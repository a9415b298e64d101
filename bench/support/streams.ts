import { type IncomingMessage, request } from 'node:http';

/** Receives the text of an answer as it arrives. */
export type OnText = (text: string) => void;

/** Reads one answer of the provider itself, with as little work as possible. */
export function readProvider(providerUrl: string, model: string, onText: OnText): Promise<void> {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Go' }] });
  return post(`${providerUrl}/chat/completions`, {}, body, /"content":"((?:[^"\\]|\\.)*)"/g, onText);
}

/** Reads the same answer through Atrium, each time in a new thread. */
export function readAtrium(url: string, token: string, modelId: string, onText: OnText): Promise<void> {
  const body = JSON.stringify({ content: 'Go', modelId });
  const pattern = /"type":"text-delta","id":"[^"]*","delta":"((?:[^"\\]|\\.)*)"/g;
  return post(`${url}/chat/stream`, { authorization: `Bearer ${token}` }, body, pattern, onText);
}

/** Posts, and takes the text out of the stream with a pattern, so that the client costs little. */
async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  pattern: RegExp,
  onText: OnText,
): Promise<void> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}.`);
  let rest = '';
  response.setEncoding('utf8');
  for await (const piece of response as AsyncIterable<string>) {
    const text = rest + piece;
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    for (const match of text.slice(0, end).matchAll(pattern)) onText(match[1] ?? '');
  }
}
