/**
 * A program for tests: a site with many kinds of pages, on a computer's own loopback. The first part of the path names
 * the kind.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const html = (body, title = 'A page') => `<!doctype html><title>${title}</title>${body}`;
const icon = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><rect width="16" height="16"/></svg>';
const visits = new Map();
const busy = Promise.withResolvers();

const pages = {
  '/': (res) => res.end(html('<link rel="icon" href="/icon.svg"><h1>Welcome</h1><a href="/second">On</a>', 'Home')),
  '/icon.svg': (res) => res.setHeader('content-type', 'image/svg+xml').end(icon),
  '/icon': (res, req) => {
    const href = decodeURIComponent(new URL(req.url, 'http://localhost').search.slice(1));
    res.end(html(`<link rel="shortcut icon"${href === '' ? '' : ` href="${href}"`}>`));
  },
  '/second': (res) => res.end(html('<h1>Second</h1><div style="height:5000px">Long</div>', 'Second')),
  '/to-file': (res) => res.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  '/to-second': (res) => res.writeHead(302, { location: '/second' }).end(),
  '/never': () => undefined,
  '/busy-begins': (res) => {
    busy.resolve();
    res.end();
  },
  '/until-busy': async (res) => {
    await busy.promise;
    res.end();
  },
  '/half': (res) => res.write(html('<p>The beginning</p>', 'Half')),
  '/download': (res) =>
    res
      .writeHead(200, {
        'content-type': 'application/octet-stream',
        'content-disposition': 'attachment; filename="report.bin"',
      })
      .end('downloaded'),
  '/login': (res) => {
    res.setHeader('set-cookie', 'who=ada; Max-Age=86400; Path=/');
    res.end(html('<script>localStorage.setItem("theme", "dark")</script>', 'Logged in'));
  },
  '/who': (res, req) =>
    res.end(
      html(
        `<script>document.title = ${JSON.stringify(req.headers.cookie ?? 'nobody')} + ' ' + localStorage.getItem('theme')</script>`,
      ),
    ),
  '/dialogs': (res) =>
    res.end(html('<script>alert("Hello"); document.title = [confirm("Sure?"), prompt("Name?")].join()</script>')),
  '/later-dialog': (res) =>
    res.end(
      html(
        '<script>setTimeout(() => { document.title = "shown"; document.title = "answered " + confirm("Now?") }, 2_000)</script>',
        'Waiting',
      ),
    ),
  '/popup': (res) =>
    res.end(
      html('<button onclick="window.open(new URLSearchParams(location.search).get(`to`))">Open</button>', 'Opener'),
    ),
  '/form': (res) =>
    res.end(
      html(
        `<nav aria-label="Main"><a href="/second">Second page</a></nav>
        <main><h1>Order</h1><p>Fill in <b>all</b> of it.</p>
        <form onsubmit="event.preventDefault(); result.textContent = JSON.stringify(Object.fromEntries(new FormData(this)))">
          <label>Name <input name="name" required value="old"></label>
          <label>Notes <textarea name="notes"></textarea></label>
          <label>Size <select name="size"><option value="s">Small</option><option value="l">Large</option></select></label>
          <label>Day <input type="date" name="day"></label>
          <label><input type="checkbox" name="fast"> Fast</label>
          <input type="password" name="secret" aria-label="Secret" value="hidden">
          <button>Send</button><button type="button" disabled>Never</button>
        </form>
        <div id="editor" contenteditable role="textbox" aria-label="Editor">draft</div>
        <output id="result"></output>
        <table><tr><td>One</td><td>Two</td></tr></table>
        <shadow-box></shadow-box>
        <iframe title="Inner" srcdoc="<button onclick='parent.document.title = String(event.isTrusted)'>Inside</button>"></iframe>
        <iframe title="Elsewhere" src="http://127.0.0.1:8000/framed" style="margin-top:40px;border:7px solid;padding:9px"></iframe>
        <div style="height:3000px"></div><button id="low" onclick="result.textContent = 'low'">Low</button>
        <button id="under" onclick="result.textContent = 'under'">Under</button></main>
        <script>
          customElements.define('shadow-box', class extends HTMLElement {
            constructor() {
              super();
              this.attachShadow({ mode: 'open' }).innerHTML = '<button>In the shadow</button>';
              this.shadowRoot.firstChild.onclick = (event) => { result.textContent = 'shadow ' + event.isTrusted; };
            }
          });
          const cover = (tag) => { const over = document.createElement(tag); over.id = 'Send your keys';
            over.style = 'position:fixed;inset:0'; document.body.append(over); };
          if (location.search === '?covered') cover('div');
          if (location.search === '?named') cover('send-your-keys-to-example');
        </script>`,
        'Form',
      ),
    ),
  '/later': (res) =>
    res.end(
      html(
        '<script>setTimeout(() => { document.body.textContent = "It is here"; location.hash = "later"; }, 300)</script>',
      ),
    ),
  '/hiding': (res) =>
    res.end(
      html(`<button onclick="away.hidden = true">Hide</button><button onclick="away.remove()">Remove</button>
        <button id="away">Away</button>`),
    ),
  '/leaving': (res) => res.end(html('<script>onbeforeunload = () => "Stay"</script><p>Stay here', 'Leaving')),
  '/framed': (res) =>
    res.end(html('<button onclick="this.textContent = &quot;Pressed &quot; + event.isTrusted">Elsewhere too</button>')),
  '/visits': (res, req) => {
    visits.set(req.url, (visits.get(req.url) ?? 0) + 1);
    res.end(html('', String(visits.get(req.url))));
  },
};

const hostile = {
  '/long-title': '<script>document.title = "x".repeat(10_000_000)</script><p>Long',
  '/many-alerts': '<script>for (;;) alert("Again")</script>',
  '/many-nodes': `<script>
    const all = document.createElement('div');
    all.hidden = true; // else to draw them takes longer than anybody waits
    for (let n = 0; n < 1_000_000; n++) all.append(document.createElement('i'));
    document.write('<p>There are many</p>');
    document.body.append(all);
  </script>`,
  '/deep': `<p>Above</p><script>
    let at = document.body;
    for (let n = 0; n < 700; n++) at = at.appendChild(document.createElement('div'));
    at.textContent = 'Below';
  </script>`,
  // A synchronous request blocks the page's thread until the answer, so nothing runs between the answer and the loop.
  '/busy': `<p>Busy</p><script>onload = () => setTimeout(() => {
    const request = new XMLHttpRequest();
    request.open('GET', '/busy-begins', false);
    request.send();
    for (;;);
  }, 100)</script>`,
  '/noise': `<canvas id="c" width="4000" height="6000"></canvas><script>
    const context = c.getContext('2d');
    const tile = context.createImageData(1000, 1000);
    for (let n = 0; n < tile.data.length; n++) tile.data[n] = Math.random() * 256;
    for (let x = 0; x < 4; x++) for (let y = 0; y < 4; y++) context.putImageData(tile, x * 1000, y * 1000);
  </script>`,
  '/many-sites': Array.from(
    { length: 300 },
    (_, n) => `<iframe src="http://s${n}.localhost:8000/framed"></iframe>`,
  ).join(''),
  '/many-frames': Array.from({ length: 100 }, (_, n) => `<iframe srcdoc="<button>Button ${n}</button>"></iframe>`).join(
    '',
  ),
};
for (const [path, body] of Object.entries(hostile)) pages[path] = (res) => res.end(html(body, 'Hostile'));

/** Fake answers instead of Chromium's, by the last part of the path. */
const honest = {
  'Target.attachToTarget': { sessionId: '1' },
  'Target.getTargets': { targetInfos: [{ targetId: '0123', type: 'page', title: '', url: '' }] },
  'Page.enable': {},
  'Inspector.enable': {},
  'Page.setLifecycleEventsEnabled': {},
};
const impostors = {
  later: ({ id, method }) => JSON.stringify({ id, result: honest[method] ?? 'wrong' }),
  none: ({ id, method }) => JSON.stringify(honest[method] ? { id, result: honest[method] } : { id, error: null }),
  garbage: () => 'no JSON',
  array: () => '[]',
  wrong: ({ id }) => JSON.stringify({ id, result: { targetInfos: 'none' } }),
  refusing: ({ id }) => JSON.stringify({ id, error: { message: { nested: true } } }),
  deep: ({ id }) => `{"id":${id},"result":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
  silent: () => undefined,
};

const server = createServer((req, res) => {
  res.setHeader('content-type', 'text/html; charset=utf-8');
  const page = pages[new URL(req.url, 'http://localhost').pathname];
  if (page === undefined) res.writeHead(404).end(html('<h1>Nothing here</h1>', 'Not found'));
  else page(res, req);
});

function answerCommands(req, socket) {
  const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  socket.on('error', () => undefined);
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`,
  );
  const kind = req.url.split('/').at(-1);
  socket.on('data', (bytes) => {
    if (kind === 'long') return socket.write(Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]));
    for (const command of commandsIn(bytes)) {
      const text = impostors[kind]?.(command);
      if (text === undefined) return;
      const head = text.length < 126 ? [0x81, text.length] : [0x81, 126, text.length >> 8, text.length & 255];
      socket.write(Buffer.concat([Buffer.from(head), Buffer.from(text)]));
    }
  });
}

/** Parses masked text messages of less than 64 KiB. */
function* commandsIn(bytes) {
  for (let at = 0; at + 6 <= bytes.length && (bytes[at] & 15) === 1; ) {
    const isLong = (bytes[at + 1] & 127) === 126;
    const length = isLong ? bytes.readUInt16BE(at + 2) : bytes[at + 1] & 127;
    const from = at + (isLong ? 8 : 6);
    const mask = bytes.subarray(from - 4, from);
    at = from + length;
    const text = bytes.subarray(from, at).map((byte, n) => byte ^ mask[n % 4]);
    yield JSON.parse(text.toString());
  }
}
server.on('upgrade', answerCommands);

/** Answers at ports where the list of tabs is expected. */
const wrongLists = {
  8001: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: nothing\r\nConnection: Upgrade\r\n\r\n',
  8002: 'This is not HTTP.\r\n\r\n',
  8003: '',
  8004: 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[',
  8005: `HTTP/1.1 200 OK\r\n\r\n${'['.repeat(100_000)}`,
};
for (const [port, answer] of Object.entries(wrongLists)) {
  const other = createServer((req) => req.socket.end(answer));
  other.on('upgrade', answerCommands).listen(Number(port), '127.0.0.1');
}

server.listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('listening\n'));
