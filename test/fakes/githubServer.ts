import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { jwtVerify } from 'jose';
import { signHub } from '../../integrations/gitHosting/index.ts';
import type { GitServer } from '../support/gitServer.ts';

export interface FakeRepository {
  id: number;
  /** `owner/name` */
  path: string;
}

export interface FakeInstallation {
  id: number;
  account: { id: number; login: string };
  /** An enterprise has its own numbering and no login. */
  isEnterprise?: boolean;
  repositories: FakeRepository[];
  isSuspended: boolean;
  /** Still listed, but a request for a token fails. */
  isGone: boolean;
}

export interface FakePerson {
  id: number;
  login: string;
  /** The repositories that the person may read, by id. True if they may also write. */
  repositories: Map<number, boolean>;
}

export interface FakeToken {
  token: string;
  installationId: number;
  repositoryIds: number[];
  permissions: Record<string, string>;
  isRevoked: boolean;
  knownAt: number;
}

interface Answer {
  status: number;
  body?: unknown;
  /** Instead of `body`, for answers that are truncated or not JSON. */
  raw?: string;
  headers?: Record<string, string>;
}

/** Controls the fake: actions of people and customers at GitHub, and GitHub's failures. */
export interface FakeGitHub {
  url: string;
  /** The variables of config/ that make Atrium its App. */
  environment: Record<string, string>;
  requests: { method: string; path: string; body: string; authorization: string }[];
  /** Requests of git, by `owner/name`. */
  gitRequests: { path: string; authorization: string | undefined }[];
  installations: Map<number, FakeInstallation>;
  tokens: FakeToken[];
  /** Tokens of people. They end with the person's visit. */
  userTokens: Set<string>;
  pageSize: number;
  /** The offset of GitHub's clock from this machine's. */
  skewMs: number;
  /** How long a new token stays unknown. */
  newTokenMs: number;
  /** The delay of each answer. */
  answerMs: number;
  /** The length of each repository's description. */
  descriptionLength: number;
  /** Whether `GET /app` fails. */
  failAbout: boolean;
  /** Answers the next requests with these, each once. `hold` never answers; undefined answers normally. */
  failNext(...answers: (Answer | 'hold' | undefined)[]): void;
  /** Drops the failures that no request has consumed yet. */
  failNoMore(): void;
  install(login: string, repositories?: string[]): FakeInstallation;
  person(login: string, id?: number): FakePerson;
  /** Signs a person in at the given page, and returns the URL that GitHub redirects them to. */
  authorize(url: string, person: FakePerson): string;
  event(apiUrl: string, name: string, body: object, secret?: string): Promise<Response>;
  /** Makes a git server GitHub's: it requires an installation's token for the repository. */
  guard(git: GitServer): void;
  stop(): Promise<void>;
}

const base = '/api/v3';
const appId = '4711';
const clientId = 'Iv1.fake';
const clientSecret = 'fake client secret';
export const webhookSecret = 'fake webhook secret';
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const longestJwtSeconds = 600;

/** A server on loopback with the part of GitHub's API that Atrium uses. */
export async function startFakeGitHub(): Promise<FakeGitHub> {
  const failures: (Answer | 'hold' | undefined)[] = [];
  const codes = new Map<string, FakePerson>();
  const people = new Map<string, FakePerson>();
  const logins = new Map<string, FakePerson>();
  let number = 100;

  const server = createServer(async (req, res) => {
    const body = await text(req);
    const failure = take(req, body);
    if (failure === 'hold') return;
    await delay(github.answerMs);
    send(res, failure ?? (await route(req, body)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // Does not keep the process alive.
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const github: FakeGitHub = {
    url,
    environment: {
      ATRIUM_GITHUB_APP_ID: appId,
      // GitHub's format, on one line as in an environment file.
      ATRIUM_GITHUB_PRIVATE_KEY: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString().replaceAll('\n', '\\n'),
      ATRIUM_GITHUB_CLIENT_ID: clientId,
      ATRIUM_GITHUB_CLIENT_SECRET: clientSecret,
      ATRIUM_GITHUB_WEBHOOK_SECRETS: `an older one,${webhookSecret}`,
      ATRIUM_GITHUB_ADDRESS: `${url}${base}`,
    },
    requests: [],
    gitRequests: [],
    installations: new Map(),
    tokens: [],
    userTokens: new Set(),
    pageSize: 100,
    skewMs: 0,
    newTokenMs: 0,
    answerMs: 0,
    descriptionLength: 0,
    failAbout: false,
    failNext: (...answers) => void failures.push(...answers),
    failNoMore: () => void failures.splice(0),
    install(login, names = ['tool']) {
      const installation: FakeInstallation = {
        id: ++number,
        account: { id: ++number, login },
        repositories: names.map((name) => ({ id: ++number, path: `${login}/${name}` })),
        isSuspended: false,
        isGone: false,
      };
      github.installations.set(installation.id, installation);
      return installation;
    },
    person(login, id = ++number) {
      const person = { id, login, repositories: new Map() };
      logins.set(login, person);
      return person;
    },
    authorize(at, person) {
      const { origin, pathname, searchParams } = new URL(at);
      if (`${origin}${pathname}` !== `${url}/login/oauth/authorize` || searchParams.get('client_id') !== clientId) {
        throw new Error(`GitHub has no page ${at}.`);
      }
      const code = randomBytes(10).toString('hex');
      codes.set(code, person);
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('code', code);
      back.searchParams.set('state', searchParams.get('state') ?? '');
      return back.href;
    },
    event(apiUrl, name, object, secret = webhookSecret) {
      const body = JSON.stringify(object);
      return fetch(`${apiUrl}/api/webhooks/github`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-github-event': name,
          'x-github-delivery': `${++number}`,
          'x-hub-signature-256': signHub(body, secret),
        },
        body,
      });
    },
    guard(git) {
      git.interfere = (req, res) => guardGit(req, res);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return github;

  function take(req: IncomingMessage, body: string): Answer | 'hold' | undefined {
    const { pathname } = new URL(req.url ?? '/', url);
    const { authorization = '' } = req.headers;
    github.requests.push({ method: req.method ?? '', path: pathname.replace(base, ''), body, authorization });
    return failures.shift();
  }

  function now(): number {
    return Date.now() + github.skewMs;
  }

  function send(res: ServerResponse, { status, body, raw, headers }: Answer): void {
    const type = { 'content-type': 'application/json; charset=utf-8', date: new Date(now()).toUTCString() };
    res.writeHead(status, { ...type, ...headers });
    res.end(status === 204 ? undefined : (raw ?? JSON.stringify(body ?? { message: 'as asked for' })));
  }

  async function route(req: IncomingMessage, body: string): Promise<Answer> {
    const { pathname, searchParams } = new URL(req.url ?? '/', url);
    const name = `${req.method} ${pathname.replace(base, '')}`;
    const { authorization = '' } = req.headers;
    if (name === 'POST /login/oauth/access_token') return exchange(JSON.parse(body));
    if (/ \/app(\/|$)/.test(name)) return (await refusedJwt(authorization)) ?? asApp(name, body, searchParams);
    if (/ \/(installation|repos)\//.test(name)) return asInstallation(name, authorization);
    if (/ \/user(\/|$)/.test(name)) return asPerson(name, authorization, searchParams);
    if (name === `DELETE /applications/${clientId}/token`) {
      github.userTokens.delete((JSON.parse(body) as { access_token: string }).access_token);
      return { status: 204 };
    }
    return missing;
  }

  /** GitHub's checks of an App's JWT, with its messages. */
  async function refusedJwt(authorization: string): Promise<Answer | undefined> {
    const [, jwt = ''] = /^bearer (.+)$/i.exec(authorization) ?? [];
    try {
      const currentDate = new Date(now());
      const options = { issuer: appId, algorithms: ['RS256'], currentDate };
      const { payload } = await jwtVerify(jwt, publicKey, { ...options, clockTolerance: longestJwtSeconds * 10 });
      const seconds = now() / 1_000;
      const tooFar = (payload.exp ?? 0) > seconds + longestJwtSeconds;
      if (tooFar) return unauthorized("'Expiration time' claim ('exp') is too far in the future");
      if ((payload.exp ?? 0) < seconds) {
        const said =
          "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
        return unauthorized(said);
      }
      return undefined;
    } catch {
      return unauthorized('A JSON web token could not be decoded');
    }
  }

  function asApp(name: string, body: string, query: URLSearchParams): Answer {
    if (name === 'GET /app' && github.failAbout) return { status: 502 };
    if (name === 'GET /app')
      return { status: 200, body: { id: Number(appId), name: 'Atrium of a test', html_url: `${url}/apps/atrium` } };
    if (name === 'GET /app/installations')
      return paged([...github.installations.values()].map(present), query, '/app/installations');
    const [, id, more = ''] = / \/app\/installations\/(\d+)(\/access_tokens)?$/.exec(name) ?? [];
    const installation = github.installations.get(Number(id));
    if (installation === undefined) return missing;
    if (more === '') return { status: 200, body: present(installation) };
    if (installation.isGone) return missing;
    if (installation.isSuspended) return { status: 403, body: { message: 'This installation has been suspended' } };
    return makeToken(installation, JSON.parse(body));
  }

  function makeToken(
    { id, repositories }: FakeInstallation,
    asked: { repository_ids?: number[]; repositories?: string[]; permissions?: Record<string, string> },
  ): Answer {
    const wanted = repositories.filter(
      (repository) =>
        (asked.repository_ids?.includes(repository.id) ?? true) &&
        (asked.repositories?.includes(repository.path.split('/')[1] ?? '') ?? true),
    );
    const count = asked.repository_ids?.length ?? asked.repositories?.length ?? wanted.length;
    if (wanted.length !== count)
      return { status: 422, body: { message: 'There is at least one repository that does not exist' } };
    const made: FakeToken = {
      token: `ghs_${randomBytes(150).toString('base64url')}.${randomBytes(150).toString('base64url')}.${randomBytes(80).toString('base64url')}`,
      installationId: id,
      repositoryIds: wanted.map((repository) => repository.id),
      permissions: asked.permissions ?? {},
      isRevoked: false,
      knownAt: Date.now() + github.newTokenMs,
    };
    github.tokens.push(made);
    const expires = new Date(now() + 3_600_000).toISOString();
    return { status: 201, body: { token: made.token, expires_at: expires, permissions: made.permissions } };
  }

  function asInstallation(name: string, authorization: string): Answer {
    const token = findToken(authorization.replace(/^token /, ''));
    if (token === undefined) return unauthorized('Bad credentials');
    if (name === 'DELETE /installation/token') {
      token.isRevoked = true;
      return { status: 204 };
    }
    const all = github.installations.get(token.installationId)?.repositories ?? [];
    const seen = all.filter(({ id }) => token.repositoryIds.includes(id));
    const [, path, login = ''] = / \/repos\/([^/]+\/[^/]+)\/collaborators\/([^/]+)\/permission$/.exec(name) ?? [];
    if (path !== undefined)
      return permissionOf(
        seen.find((one) => one.path === path),
        logins.get(login),
      );
    if (name !== 'GET /installation/repositories') return missing;
    return {
      status: 200,
      body: { total_count: seen.length, repositories: seen.map(({ id, path }) => ({ id, full_name: path })) },
    };
  }

  function permissionOf(repository: FakeRepository | undefined, person: FakePerson | undefined): Answer {
    if (repository === undefined || person === undefined) return missing;
    const mayWrite = person.repositories.get(repository.id);
    const permission = mayWrite === undefined ? 'none' : mayWrite ? 'write' : 'read';
    return { status: 200, body: { permission, role_name: permission, user: { id: person.id, login: person.login } } };
  }

  function findToken(text: string): FakeToken | undefined {
    return github.tokens.find(({ token, isRevoked, knownAt }) => token === text && !isRevoked && Date.now() >= knownAt);
  }

  function exchange(asked: { code?: string; client_id?: string; client_secret?: string }): Answer {
    const person = codes.get(asked.code ?? '');
    codes.delete(asked.code ?? '');
    if (asked.client_secret !== clientSecret || asked.client_id !== clientId || person === undefined) {
      const isKnown = asked.client_secret === clientSecret && asked.client_id === clientId;
      const error = {
        error: isKnown ? 'bad_verification_code' : 'incorrect_client_credentials',
        error_description: 'The code passed is incorrect or expired.',
        error_uri: url,
      };
      return { status: 200, body: error };
    }
    const token = `ghu_${randomBytes(30).toString('base64url')}`;
    github.userTokens.add(token);
    people.set(token, person);
    return { status: 200, body: { access_token: token, token_type: 'bearer', scope: '' } };
  }

  function asPerson(name: string, authorization: string, query: URLSearchParams): Answer {
    const token = authorization.replace(/^token /, '');
    const person = github.userTokens.has(token) ? people.get(token) : undefined;
    if (person === undefined) return unauthorized('Bad credentials');
    if (name === 'GET /user') return { status: 200, body: { id: person.id, login: person.login } };
    const isTheirs = ({ account }: FakeInstallation) => account.id === person.id;
    if (name === 'GET /user/installations') {
      // A person sees an installation if they may read one of its repositories.
      const seen = [...github.installations.values()].filter(
        (one) => isTheirs(one) || one.repositories.some(({ id }) => person.repositories.has(id)),
      );
      return paged(seen.map(present), query, '/user/installations', 'installations');
    }
    const [, id] = / \/user\/installations\/(\d+)\/repositories$/.exec(name) ?? [];
    const installation = github.installations.get(Number(id));
    if (installation === undefined) return missing;
    const readable = installation.repositories.filter(
      (one) => isTheirs(installation) || person.repositories.has(one.id),
    );
    const rows = readable.map((one) => ({
      id: one.id,
      full_name: one.path,
      description: 'd'.repeat(github.descriptionLength),
      permissions: { pull: true, push: isTheirs(installation) || person.repositories.get(one.id) === true },
    }));
    return paged(rows, query, `/user/installations/${id}/repositories`, 'repositories');
  }

  function paged(rows: object[], query: URLSearchParams, path: string, field?: string): Answer {
    const [page, size] = [
      Number(query.get('page') ?? 1),
      Math.min(Number(query.get('per_page') ?? 30), github.pageSize),
    ];
    const some = rows.slice((page - 1) * size, page * size);
    const next = `<${url}${base}${path}?per_page=${size}&page=${page + 1}>; rel="next"`;
    return {
      status: 200,
      body: field === undefined ? some : { total_count: rows.length, [field]: some },
      ...(page * size < rows.length && { headers: { link: next } }),
    };
  }

  /** Requires a token, redirects to the name that ends in `.git`, and checks the token's repositories. */
  function guardGit(req: IncomingMessage, res: ServerResponse): boolean {
    const { pathname, search } = new URL(req.url ?? '/', 'https://x');
    const [, path = '', dotGit, rest = ''] = /^\/([^/]+\/[^/]+?)(\.git)?(\/.*)$/.exec(pathname) ?? [];
    const { authorization } = req.headers;
    github.gitRequests.push({ path, authorization });
    if (dotGit === undefined) {
      res.writeHead(301, { location: `/${path}.git${rest}${search}` }).end();
      return true;
    }
    const [user, password = ''] = Buffer.from((authorization ?? '').replace(/^Basic /, ''), 'base64')
      .toString()
      .split(':');
    const token = user === 'x-access-token' ? findToken(password) : undefined;
    const repository =
      token &&
      github.installations
        .get(token.installationId)
        ?.repositories.find((one) => one.path.toLowerCase() === path.toLowerCase());
    if (repository !== undefined && token?.repositoryIds.includes(repository.id)) return false;
    res.writeHead(token === undefined ? 401 : 404, { 'www-authenticate': 'Basic realm="GitHub"' }).end();
    return true;
  }
}

const missing: Answer = { status: 404, body: { message: 'Not Found' } };

function unauthorized(message: string): Answer {
  return { status: 401, body: { message } };
}

function present({ id, account, isSuspended, isEnterprise = false }: FakeInstallation): object {
  const at = '2026-01-31T12:00:00Z';
  const shown = isEnterprise ? { id: account.id, slug: account.login } : { ...account, type: 'Organization' };
  return { id, account: shown, suspended_at: isSuspended ? at : null, created_at: at };
}
