import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { createAuthority, HostCertificates } from '../../integrations/egress/certificates.ts';
import { gitIn } from './gitRepository.ts';

/** Answers instead of git if it returns true. */
export type Interference = (req: IncomingMessage, res: ServerResponse) => boolean | undefined;

/** A real git server: `git http-backend` behind https, with a certificate authority that only this test trusts. */
export interface GitServer extends AsyncDisposable {
  port: number;
  host: string;
  /** For `ATRIUM_GIT_CA_FILE`. */
  caFile: string;
  /** The parent folder of the repositories. */
  root: string;
  url(name: string): string;
  /** Makes a bare repository that can be cloned and pushed to. */
  create(name: string): string;
  /** Bytes of response bodies since the last `reset`. */
  sent: number;
  requests: { method: string; url: string; host: string; authorization: string | undefined }[];
  /** Ends the connection after this many bytes of a pack. */
  cutAfter: number | undefined;
  /** Stops sending after this many bytes of a pack, and keeps the connection open. */
  holdAfter: number | undefined;
  isHolding: boolean;
  /** The required credentials, as `user:password`. */
  requires: string | undefined;
  interfere: Interference | undefined;
  reset(): void;
}

export async function startGitServer(folder: string, host = 'git.example'): Promise<GitServer> {
  const authority = await createAuthority(new Date());
  const certificates = new HostCertificates(authority);
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, authority.certificate);
  const root = join(folder, 'repositories');
  mkdirSync(root, { recursive: true });

  const server: Server = createServer(
    {
      ALPNProtocols: ['http/1.1'],
      SNICallback: (name, done) => certificates.contextFor(name).then((context) => done(null, context), done),
    },
    (req, res) => {
      const { authorization, host: asked = '' } = req.headers;
      git.requests.push({ method: req.method ?? '', url: req.url ?? '', host: asked, authorization });
      const wanted = git.requires && `Basic ${Buffer.from(git.requires).toString('base64')}`;
      if (git.interfere?.(req, res)) return;
      if (wanted !== undefined && authorization !== wanted) {
        res.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
        return;
      }
      serve(git, req, res);
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const git: GitServer = {
    port,
    host,
    caFile,
    root,
    url: (name) => `https://${host}:${port}/${name}`,
    create(name) {
      const path = join(root, name);
      mkdirSync(path, { recursive: true });
      gitIn(path, 'init', '--quiet', '--bare', '--initial-branch=main');
      for (const setting of ['uploadpack.allowFilter', 'http.receivepack']) gitIn(path, 'config', setting, 'true');
      return path;
    },
    sent: 0,
    requests: [],
    cutAfter: undefined,
    holdAfter: undefined,
    isHolding: false,
    requires: undefined,
    interfere: undefined,
    reset() {
      const none = { cutAfter: undefined, holdAfter: undefined, requires: undefined, interfere: undefined };
      Object.assign(git, { sent: 0, requests: [], isHolding: false, ...none });
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return git;
}

/** Handles a request with git's CGI (git-http-backend(1)). */
function serve(git: GitServer, req: IncomingMessage, res: ServerResponse): void {
  const { pathname, search } = new URL(req.url ?? '/', 'https://x');
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      GIT_PROJECT_ROOT: git.root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_NOSYSTEM: '1',
      REQUEST_METHOD: req.method ?? 'GET',
      PATH_INFO: decodeURIComponent(pathname),
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: req.headers['content-type'] ?? '',
      GIT_PROTOCOL: String(req.headers['git-protocol'] ?? ''),
      REMOTE_USER: 'somebody',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const body = req.headers['content-encoding'] === 'gzip' ? req.pipe(createGunzip()) : req;
  body.on('error', () => backend.kill());
  backend.stdin.on('error', () => undefined);
  body.pipe(backend.stdin);
  res.once('close', () => backend.kill('SIGKILL'));
  const isPack = req.method === 'POST' && pathname.endsWith('/git-upload-pack');
  let head: Buffer | undefined = Buffer.alloc(0);
  let ofThis = 0;
  backend.stdout.on('data', (chunk: Buffer) => {
    let bytes = chunk;
    if (head !== undefined) {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      answerHead(res, head.toString('latin1', 0, end));
      bytes = head.subarray(end + 4);
      head = undefined;
    }
    const limit = git.cutAfter ?? git.holdAfter;
    const left = isPack && limit !== undefined ? limit - ofThis : Number.POSITIVE_INFINITY;
    const passed = bytes.subarray(0, Math.max(0, Math.min(bytes.length, left)));
    ofThis += passed.length;
    git.sent += passed.length;
    if (!res.write(passed)) {
      backend.stdout.pause();
      res.once('drain', () => backend.stdout.resume());
    }
    if (passed.length < bytes.length) {
      if (git.cutAfter === undefined) {
        git.isHolding = true;
        backend.stdout.pause();
        return;
      }
      backend.kill('SIGKILL');
      // Written bytes should arrive first.
      res.socket?.destroySoon();
    }
  });
  backend.stdout.once('end', () => res.end());
}

function answerHead(res: ServerResponse, head: string): void {
  let status = 200;
  for (const line of head.split('\r\n')) {
    const [name = '', value = ''] = line.split(/: (.*)/s);
    if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
    else res.setHeader(name, value);
  }
  res.writeHead(status);
}
