import { load } from 'js-yaml';
import request from 'supertest';
import { buildApi, type TestApi } from '../../builders/api.ts';

const metricsKey = 'an-operators-own-key';
let api: TestApi;
let isUp = true;
let isStorageUp = true;

beforeAll(async () => {
  const check = async () => {
    if (!isUp) throw new Error('connect ECONNREFUSED 10.0.0.7:7233');
  };
  const checkStorage = async () => {
    if (!isStorageUp) throw new Error('connect ECONNREFUSED 10.0.0.7:7070');
  };
  api = await buildApi(
    { ATRIUM_METRICS_KEY: metricsKey },
    {
      checks: [
        { name: 'temporal', check },
        { name: 'storage', without: 'The rest goes on.', check: checkStorage },
      ],
    },
  );
});
afterAll(() => api.close());

test('/healthz says that the process is alive', async () => {
  const response = await api.as().get('/healthz');
  expect([response.status, response.body]).toEqual([200, { status: 'ok' }]);
});

test('/readyz asks each part, and names the one that does not answer, without its address', async () => {
  const ready = await api.as().get('/readyz');
  expect(ready.body).toEqual({
    status: 'ready',
    parts: [
      { name: 'database', status: 'ok', durationMs: expect.any(Number) },
      { name: 'temporal', status: 'ok', durationMs: expect.any(Number) },
      { name: 'storage', status: 'ok', durationMs: expect.any(Number) },
    ],
  });
  isUp = false;
  const not = await api.as().get('/readyz');
  expect([not.status, not.body.detail]).toEqual([503, 'Not ready: temporal.']);
  expect(not.headers['retry-after']).toBe('2');
  expect(JSON.stringify(not.body)).not.toContain('10.0.0.7');
  isUp = true;
});

test('/readyz is ready, but degraded, without its object store', async () => {
  isStorageUp = false;
  const { status, body } = await api.as().get('/readyz');
  expect([status, body.status, body.parts.at(-1)]).toEqual([
    200,
    'degraded',
    { name: 'storage', status: 'unavailable', durationMs: expect.any(Number), detail: 'The rest goes on.' },
  ]);
  isStorageUp = true;
});

test('/metrics is for loopback, or for the operator’s key', async () => {
  const local = await api.as().get('/metrics');
  expect([local.status, local.headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
  expect(local.text).toContain('atrium_http_request_duration_seconds_bucket');
  // A request that a proxy on this machine forwards is not local.
  const forwarded = () => api.as().get('/metrics').set('x-forwarded-for', '127.0.0.1');
  expect((await forwarded()).status).toBe(403);
  expect((await forwarded().set('authorization', 'Bearer another-key-altogether')).status).toBe(403);
  expect((await forwarded().set('authorization', `Bearer ${metricsKey}`)).status).toBe(200);
});

test('The counters of /metrics end in _total, and the gauges do not', async () => {
  const types = [...(await api.as().get('/metrics')).text.matchAll(/^# TYPE (\S+) (counter|gauge)$/gm)];
  const misnamed = types.filter(([, name = '', type]) => name.endsWith('_total') !== (type === 'counter'));
  expect(types.length).toBeGreaterThan(10);
  expect(misnamed.map(([line]) => line)).toEqual([]);
  expect(types.map(([, name]) => name)).toContain('atrium_log_lines_dropped_total');
});

test('403 for /metrics under a host name that was made to lead to loopback', async () => {
  const by = (host: string) => api.as().get('/metrics').set('host', host);
  for (const name of ['localhost', 'localhost:8080', '127.0.0.1:8080', '127.8.0.1', '[::1]:8080', '[::1]']) {
    expect([name, (await by(name)).status]).toEqual([name, 200]);
  }
  for (const name of ['evil.example', 'evil.example:8080', 'localhost.evil.example', '127.0.0.1.evil.example']) {
    expect([name, (await by(name)).status]).toEqual([name, 403]);
  }
  expect((await by('evil.example').set('authorization', `Bearer ${metricsKey}`)).status).toBe(200);
});

test('Behind a trusted proxy, /metrics needs the operator’s key', async () => {
  const behind = await buildApi({ ATRIUM_METRICS_KEY: metricsKey, ATRIUM_TRUST_PROXY: '1' });
  const ask = () => behind.as().get('/metrics');
  const answer = await ask();
  expect([answer.status, answer.body.code]).toEqual([403, 'OPERATOR_ONLY']);
  expect((await ask().set('authorization', `Bearer ${metricsKey}`)).status).toBe(200);
  await behind.close();
});

test('Metrics are by operation, and not by path', async () => {
  await api.as().get('/api/spaces/spc_canary');
  const { text } = await api.as().get('/metrics');
  expect(text).toMatch(/duration_seconds_count\{operation="getSpace",method="GET",status="401"\} 1/);
  expect(text).not.toContain('spc_canary');
});

test('The contract is served as YAML and as JSON, with the same content', async () => {
  const yaml = await api
    .as()
    .get('/openapi.yaml')
    .buffer(true)
    .parse((res, done) => {
      let text = '';
      res.on('data', (chunk) => (text += chunk));
      res.on('end', () => done(null, text));
    });
  const json = await api.as().get('/openapi.json');
  expect(yaml.headers['content-type']).toMatch(/^application\/yaml/);
  expect(json.body.openapi).toBe('3.1.0');
  expect(json.body.servers).toEqual([{ url: api.environment.config.http.publicUrl }]);
  expect(load(yaml.body)).toEqual(json.body);
});

test('The reference page and all that it loads come from Atrium, under a strict policy', async () => {
  const page = await api.as().get('/docs');
  expect(page.headers['content-type']).toMatch(/^text\/html/);
  expect(page.headers['content-security-policy']).toContain("script-src 'self'");
  expect(page.headers['content-security-policy']).not.toMatch(/unsafe|https?:|\*/);
  const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    expect(file).toMatch(/^\//);
    expect([file, (await request(api.app).get(file)).status]).toEqual([file, 200]);
  }
  expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=/);
});

test('The start page tells a person with a browser what Atrium is, and its links work', async () => {
  const page = await api.as().get('/').set('accept', 'text/html,*/*');
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  expect(links).toEqual(expect.arrayContaining(['/docs', '/openapi.yaml', '/auth/sign-in']));
  for (const link of links) expect([link, (await request(api.app).get(link)).status]).toEqual([link, 200]);
  const icon = await request(api.app).get('/favicon.ico');
  expect([icon.status, icon.headers['content-type']]).toEqual([200, 'image/svg+xml']);
});

test('No other files are served beside the reference page', async () => {
  for (const file of ['../index.html', '%2e%2e/openapi.yaml', 'package.json', 'swagger-ui.js', '']) {
    expect((await request(api.app).get(`/docs/assets/${file}`)).status).toBe(404);
  }
});
