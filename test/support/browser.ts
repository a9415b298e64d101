/** A page after all redirects, or the address outside the test at which the browser stopped. */
export interface Visit {
  url: string;
  status: number;
  headers: Headers;
  text: string;
}

export interface TestBrowser {
  /** Addresses with this prefix are not opened. */
  stopAt: string;
  visit(url: string, form?: Record<string, string>): Promise<Visit>;
}

const maxRedirects = 20;

/** The HTTP behaviour of a browser: cookies for each origin, redirects, forms. */
export function createBrowser(stopAt = 'https://app.example.com/'): TestBrowser {
  const jars = new Map<string, Map<string, string>>();

  async function request(url: URL, form: Record<string, string> | undefined): Promise<Response> {
    const jar = jars.get(url.origin) ?? new Map<string, string>();
    jars.set(url.origin, jar);
    const response = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: {
        accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form !== undefined && { 'sec-fetch-site': 'same-origin', origin: url.origin }),
      },
      ...(form !== undefined && { body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';');
      const at = pair.indexOf('=');
      if (/expires=thu, 01 jan 1970/i.test(cookie)) jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
  }

  const browser: TestBrowser = {
    stopAt,
    async visit(start, form) {
      let url = new URL(start);
      let body = form;
      for (let hop = 0; hop < maxRedirects; hop++) {
        if (url.href.startsWith(browser.stopAt)) return { url: url.href, status: 0, headers: new Headers(), text: '' };
        const response = await request(url, body);
        const location = response.headers.get('location');
        if (response.status < 300 || response.status > 399 || location === null) {
          return { url: url.href, status: response.status, headers: response.headers, text: await response.text() };
        }
        await response.body?.cancel();
        url = new URL(location, url);
        body = undefined;
      }
      throw new Error(`More than ${maxRedirects} redirects from ${start}.`);
    },
  };
  return browser;
}
