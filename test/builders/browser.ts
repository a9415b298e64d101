import { waitFor } from '../support/waitFor.ts';
import type { TestComputer } from './computer.ts';

export interface BrowserSession {
  id: string;
  profileId: string | null;
  computerId: string;
  status: string;
  resolution: string;
  urlError: { code: string; detail: string } | null;
  end: { code: string; detail: string } | null;
  save: { state: string; code: string | null; savedAt: string | null };
  downloads: { folder: string; files: number; bytes: number; code: string | null };
  endedAt: string | null;
}

export interface BrowserProfile {
  id: string;
  name: string;
  computerId: string;
  savedAt: string | null;
  savedBytes: number | null;
  sessions: BrowserSession[];
}

export interface BrowserTab {
  id: string;
  url: string;
  title: string;
  active: boolean;
  faviconUrl: string | null;
  status: string;
  error: { code: string; detail: string } | null;
}

/** The browsers of a computer's space, over the API. */
export function browsersOf({ user }: Pick<TestComputer, 'user'>, spaceId = user.spaceId) {
  const base = `/api/spaces/${spaceId}/browsers`;
  async function expect<T>(status: number, method: string, path: string, body?: unknown): Promise<T> {
    const response = await user.fetch(base + path, { method, body });
    const text = await response.text();
    if (response.status !== status) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
  const browsers = {
    base,
    expect,
    fetch: (path: string, init?: Parameters<typeof user.fetch>[1]) => user.fetch(base + path, init),
    profile: (name = 'Shopping') => expect<BrowserProfile>(201, 'POST', '/profiles', { name }),
    start: (profile: Pick<BrowserProfile, 'id'>, body: Record<string, unknown> = {}) =>
      expect<BrowserSession>(201, 'POST', `/profiles/${profile.id}/sessions`, body),
    temporary: (body: Record<string, unknown> = {}) => expect<BrowserSession>(201, 'POST', '/sessions', body),
    get: ({ id }: Pick<BrowserSession, 'id'>) => expect<BrowserSession>(200, 'GET', `/sessions/${id}`),
    end: ({ id }: Pick<BrowserSession, 'id'>) => expect<void>(204, 'DELETE', `/sessions/${id}`),
    tabs: async ({ id }: Pick<BrowserSession, 'id'>) =>
      (await expect<{ data: BrowserTab[] }>(200, 'GET', `/sessions/${id}/tabs`)).data,
    /** Waits until the session has ended. By then its profile is saved, or saving has failed. */
    ended: (session: Pick<BrowserSession, 'id'>) =>
      waitFor('the session to end', async () => {
        const now = await browsers.get(session);
        return now.status === 'ended' ? now : undefined;
      }),
    /** Opens a URL in the session's first tab, and returns the tab. */
    async visit(session: Pick<BrowserSession, 'id'>, url: string): Promise<BrowserTab> {
      const [tab] = await browsers.tabs(session);
      return expect<BrowserTab>(200, 'PATCH', `/sessions/${session.id}/tabs/${tab?.id}`, { url });
    },
  };
  return browsers;
}

export type TestBrowsers = ReturnType<typeof browsersOf>;

/**
 * Starts a site on the computer, for the computer's own browser. `/` shows the stored cookie and storage entry in its
 * title, `/sign-in` stores them, `/file` is a download.
 */
export async function startSite(computer: TestComputer): Promise<string> {
  await computer.exec('cat > site.py', { stdin: site });
  await computer.expect(201, 'POST', '/processes', { command: 'exec python3 site.py' });
  await waitFor('the site', async () => (await computer.exec('curl -sf http://127.0.0.1:8000/')).exitCode === 0);
  return 'http://127.0.0.1:8000';
}

const site = `
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
page = b'<!doctype html><link rel=icon href=/icon.png><title>-</title><body style="background:#204060"><script>document.title = "cookie:" + document.cookie + " storage:" + localStorage.getItem("who")</script>'
enter = b'<!doctype html><title>in</title><script>localStorage.setItem("who", "me"); document.title = "signed in"</script>'
class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302 if self.path == '/to-file' else 200)
        if self.path == '/sign-in': self.send_header('Set-Cookie', 'login=yes; Max-Age=86400')
        if self.path == '/to-file': self.send_header('Location', 'file:///etc/passwd')
        if self.path.startswith('/file'): self.send_header('Content-Disposition', 'attachment; filename="report.txt"')
        body = {'/sign-in': enter}.get(self.path, self.path.encode() * 10 if self.path.startswith('/file') else page)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
ThreadingHTTPServer(('127.0.0.1', 8000), Site).serve_forever()
`;
