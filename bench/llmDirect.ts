/** The reference of bench/llm.ts: reads a chat completions stream with as little work as possible. */
export async function readDirectly(url: string, content: string, onText: (text: string) => void): Promise<void> {
  const response = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'local', stream: true, messages: [{ role: 'user', content }] }),
  });
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body ?? []) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: {')) continue;
      const chunk = JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] };
      const text = chunk.choices[0]?.delta.content;
      if (text) onText(text);
    }
  }
}
