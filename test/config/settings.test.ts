import { resolve } from 'node:path';
import { ConfigError, loadConfig, unknownSettings } from '../../config/index.ts';

// A wrong setting stops the start with one line that names the setting and says which values are right.

const addresses = {
  ATRIUM_DATABASE_URL: 'mysql://user:password@127.0.0.1:3306/atrium',
  ATRIUM_TEMPORAL_ADDRESS: '127.0.0.1:7233',
};

const encoded = 'in which special characters of the password are percent-encoded';
const databaseLine = `ATRIUM_DATABASE_URL is not right: an address like mysql://user:password@host:3306/database, ${encoded}.`;
const redisLine = `ATRIUM_REDIS_URL is not right: an address like redis://user:password@host:6379 or rediss://…, ${encoded}.`;

function lineFor(settings: Record<string, string>): string {
  try {
    loadConfig({ ...addresses, ...settings });
    return 'none';
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
}

test.each([
  [{ ATRIUM_PORT: 'abc' }, 'ATRIUM_PORT is not right: a whole number from 0 to 65535.'],
  [{ ATRIUM_PORT: '70000' }, 'ATRIUM_PORT is not right: a whole number from 0 to 65535.'],
  [
    { ATRIUM_LOG_LEVEL: 'loud', ATRIUM_PORT: '-0.5' },
    'ATRIUM_LOG_LEVEL is not right: one of fatal, error, warn, info, debug, trace, silent.\nATRIUM_PORT is not right: a whole number from 0 to 65535.',
  ],
  [{ ATRIUM_DEMO_MODEL: 'yes' }, 'ATRIUM_DEMO_MODEL is not right: one of 0, 1, true, false.'],
  [{ ATRIUM_CORS_ORIGINS: 'localhost:5183' }, /^ATRIUM_CORS_ORIGINS is not right: origins as browsers send them/],
  [{ ATRIUM_CORS_ORIGINS: 'https://a.example, https://b.example/' }, /^ATRIUM_CORS_ORIGINS is not right/],
  [{ ATRIUM_CORS_ORIGINS: '*' }, /^ATRIUM_CORS_ORIGINS is not right/],
  [{ ATRIUM_CORS_ORIGINS: 'https://a.example, http://localhost:5183' }, 'none'],
  [{ ATRIUM_BILLING_LOW_CREDITS: '-1' }, 'ATRIUM_BILLING_LOW_CREDITS is not right: a number from 0 to 1000000000.'],
  [{ ATRIUM_BILLING_CURRENCY: 'zzz' }, /^ATRIUM_BILLING_CURRENCY is not right: a currency of ISO 4217/],
  [
    { ATRIUM_BILLING_TOP_UP_MIN: '50', ATRIUM_BILLING_TOP_UP_MAX: '5' },
    /^ATRIUM_BILLING_TOP_UP_MIN is more than ATRIUM_BILLING_TOP_UP_MAX/,
  ],
  [{ ATRIUM_PAYMENTS: 'stripe' }, 'ATRIUM_STRIPE_SECRET_KEY is not set, and ATRIUM_PAYMENTS=stripe needs it.'],
  [
    { ATRIUM_OIDC_ISSUER: 'https://issuer.example.com' },
    'ATRIUM_OIDC_CLIENT_ID is not set, and ATRIUM_OIDC_ISSUER needs it.',
  ],
  [{ ATRIUM_SMTP_URL: 'smtp://localhost' }, 'ATRIUM_SMTP_FROM is not set, and ATRIUM_SMTP_URL needs it.'],
  [{ ATRIUM_BILLING_CURRENCY: 'jpy', ATRIUM_PORT: '0' }, 'none'],
  [{ ATRIUM_DATABASE_URL: 'nonsense' }, databaseLine],
  [{ ATRIUM_DATABASE_URL: 'mysql:/host/atrium' }, databaseLine],
  [{ ATRIUM_DATABASE_URL: 'mysql:///atrium' }, databaseLine],
  [{ ATRIUM_DATABASE_URL: 'mysql://u:100%@host/atrium' }, databaseLine],
  [{ ATRIUM_DATABASE_URL: 'mysql://u:p@host:3306' }, databaseLine],
  [{ ATRIUM_DATABASE_URL: 'mysql://u:p%25w@host/atrium?socketPath=%2Frun%2Fa.sock' }, 'none'],
  [{ ATRIUM_REDIS_URL: 'localhost:6379' }, redisLine],
  [{ ATRIUM_REDIS_URL: 'redis://:top/secret@host' }, redisLine],
  [{ ATRIUM_REDIS_URL: 'rediss://user:word@host:6380/2' }, 'none'],
  [{ ATRIUM_IMAGE_REGISTRIES: 'https://a.example' }, /^ATRIUM_IMAGE_REGISTRIES is not right: hosts like/],
  [{ ATRIUM_IMAGE_REGISTRIES: 'a.example/team' }, /^ATRIUM_IMAGE_REGISTRIES is not right: hosts like/],
  [{ ATRIUM_IMAGE_REGISTRIES: 'a.example, localhost:5000,[::1]:5000' }, 'none'],
  [
    { ATRIUM_IMAGE_REGISTRIES: 'a.example', ATRIUM_IMAGE_REGISTRIES_INSECURE: 'b.example' },
    'ATRIUM_IMAGE_REGISTRIES_INSECURE names b.example, which ATRIUM_IMAGE_REGISTRIES does not name.',
  ],
  [{ ATRIUM_S3_ENDPOINT: 'localhost:9000' }, 'ATRIUM_S3_ENDPOINT is not right: an address like https://host:port.'],
])('loadConfig checks %j', (settings, line) => {
  expect(lineFor(settings)).toEqual(typeof line === 'string' ? line : expect.stringMatching(line));
});

test.each([
  ['ATRIUM_LOG_LEVL', 'ATRIUM_LOG_LEVL (ATRIUM_LOG_LEVEL is meant?)'],
  ['ATRIUM_PROT', 'ATRIUM_PROT (ATRIUM_PORT is meant?)'],
  ['ATRIUM_SOMEBODY_ELSES', 'ATRIUM_SOMEBODY_ELSES'],
])('%s is reported as an unknown setting, with the nearest known one', (name, words) => {
  expect(unknownSettings({ [name]: 'x', ATRIUM_PORT: '1', ATRIUM_API_KEY: 'x', HOME: '/' })).toEqual([words]);
});

test("git's folders become absolute, because git runs in other working directories", () => {
  const { git } = loadConfig({ ...addresses, ATRIUM_DATA_DIR: 'data', ATRIUM_GIT_CA_FILE: 'ca.pem' });
  expect([git.dir, git.caFile]).toEqual([resolve('data/git'), resolve('ca.pem')]);
  expect(loadConfig({ ...addresses, ATRIUM_GIT_DIR: 'mirrors' }).git.dir).toBe(resolve('mirrors'));
});
