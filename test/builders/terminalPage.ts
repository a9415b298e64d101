import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

const file = (name: string) => readFileSync(createRequire(import.meta.url).resolve(`@xterm/xterm/${name}`));

/** A client of a terminal, as docs/computers.md describes it. `connect` may be called again, to continue. */
const script = `
  const term = new Terminal({ cols: 80, rows: 24, allowProposedApi: true });
  term.open(document.getElementById('terminal'));
  const seen = [];
  let socket, position, seq = 0, unsaid = [];
  const writer = 'page-' + Math.random().toString(36).slice(2);
  const say = (message) => {
    if (message.type === 'input') unsaid.push(message);
    if (socket && socket.readyState === 1) socket.send(JSON.stringify(message));
  };
  term.onData((text) => say({ type: 'input', seq: ++seq, text }));
  term.onResize(({ cols, rows }) => say({ type: 'resize', cols, rows }));
  window.term = term;
  window.seen = seen;
  window.drop = () => socket.close();
  window.connect = (url, token) => new Promise((resolve) => {
    socket = new WebSocket(url + '&writer=' + writer, ['atrium', 'bearer.' + token]);
    socket.binaryType = 'arraybuffer';
    socket.onclose = ({ code }) => seen.push({ type: 'closed', code });
    socket.onmessage = ({ data }) => {
      if (typeof data !== 'string') {
        position += data.byteLength;
        return term.write(new Uint8Array(data));
      }
      const message = JSON.parse(data);
      seen.push(message);
      if (message.type === 'screen') {
        position = message.position;
        term.reset();
        term.resize(message.cols, message.rows);
        term.write(message.data);
        for (const one of unsaid) socket.send(JSON.stringify(one));
        resolve(message);
      }
      if (message.type === 'accepted') unsaid = unsaid.filter((one) => one.seq > message.seq);
    };
  });
  window.textOf = () => {
    const { active } = term.buffer;
    const lines = [];
    for (let y = 0; y < term.rows; y++) lines.push(active.getLine(active.baseY + y)?.translateToString(true) ?? '');
    return lines.join('\\n');
  };
  window.cellOf = (text) => {
    const { active } = term.buffer;
    for (let y = active.length - 1; y >= 0; y--) {
      const line = active.getLine(y);
      const x = line.translateToString().indexOf(text);
      if (x < 0) continue;
      const cell = line.getCell(x);
      return { chars: cell.getChars(), width: cell.getWidth(), fg: cell.getFgColor(), isRgb: cell.isFgRGB(), isBold: cell.isBold() !== 0 };
    }
  };
`;

/** Serves a page with xterm.js, on another origin than the API's. */
export async function serveTerminalPage(): Promise<{ url: string; close(): void }> {
  const page = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/xterm.css"><div id="terminal"></div>
    <script src="/xterm.js"></script><script>${script}</script>`;
  const files: Record<string, [type: string, content: string | Buffer]> = {
    '/': ['text/html', page],
    '/xterm.js': ['text/javascript', file('lib/xterm.js')],
    '/xterm.css': ['text/css', file('css/xterm.css')],
  };
  const server = createServer((req, res) => {
    const [type, content] = files[req.url ?? ''] ?? ['text/plain', ''];
    res.setHeader('content-type', type);
    res.end(content);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
