import { z } from 'zod';
import { integer, list, webAddress } from './kinds.ts';

const originWords =
  'origins as browsers send them, such as https://app.example.com or http://localhost:5173: with scheme and port, without a path or slash';

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

export const httpSettings = z.object({
  ATRIUM_HOST: z.string().min(1).default('127.0.0.1'),
  ATRIUM_PORT: integer(0, 65_535).default(8080),
  ATRIUM_PUBLIC_URL: webAddress.optional(),
  ATRIUM_CORS_ORIGINS: list.refine((origins) => origins.every(isOrigin), originWords).default([]),
  ATRIUM_TRUST_PROXY: integer(0, 16).default(0),
  ATRIUM_METRICS_KEY: z.string().min(16).optional(),
  ATRIUM_RATE_LIMIT_PER_MINUTE: integer(0, 1_000_000).default(600),
  ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: integer(0, 1_000_000).default(60),
  ATRIUM_HEADERS_TIMEOUT_SECONDS: integer(1, 300).default(10),
  ATRIUM_REQUEST_TIMEOUT_SECONDS: integer(1, 3_600).default(60),
  ATRIUM_STALL_TIMEOUT_SECONDS: integer(1, 600).default(30),
  ATRIUM_MAX_CONNECTIONS: integer(1, 1_000_000).default(10_000),
  ATRIUM_MAX_STREAMS_PER_USER: integer(1, 100_000).default(200),
  ATRIUM_REQUESTS_AT_ONCE: integer(1, 100_000).default(40),
  ATRIUM_REQUESTS_PER_USER_AT_ONCE: integer(1, 100_000).default(8),
});

/** How the API is reached. */
export function httpConfig(env: z.infer<typeof httpSettings>, { isDevelopment }: { isDevelopment: boolean }) {
  return Object.freeze({
    host: env.ATRIUM_HOST,
    port: env.ATRIUM_PORT,
    publicUrl: env.ATRIUM_PUBLIC_URL ?? `http://localhost:${env.ATRIUM_PORT}`,
    corsOrigins: env.ATRIUM_CORS_ORIGINS,
    /** Whether pages of web servers on this machine may call the API too, on any port. */
    allowsLocalPages: isDevelopment,
    /** How many reverse proxies stand in front. Their X-Forwarded-For is trusted. */
    trustedProxies: env.ATRIUM_TRUST_PROXY,
    /** A request with this bearer may read /metrics from any address. */
    metricsKey: env.ATRIUM_METRICS_KEY,
    /** Requests a minute for one signed-in caller; 0 turns the limit off. */
    rateLimitPerMinute: env.ATRIUM_RATE_LIMIT_PER_MINUTE,
    /** Requests a minute for one address without a credential (sign-in, codes); 0 turns the limit off. */
    anonymousRateLimitPerMinute: env.ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE,
    /** How long a client may keep us waiting. */
    patience: Object.freeze({
      headersMs: env.ATRIUM_HEADERS_TIMEOUT_SECONDS * 1_000,
      /** For a whole request, unless its body is an upload. */
      requestMs: env.ATRIUM_REQUEST_TIMEOUT_SECONDS * 1_000,
      /** For an upload to continue, and for an answer to be read. */
      stallMs: env.ATRIUM_STALL_TIMEOUT_SECONDS * 1_000,
    }),
    /** Open connections of this process. Further ones are closed at once. */
    maxConnections: env.ATRIUM_MAX_CONNECTIONS,
    /** Event streams that one user reads from this process at once. */
    maxStreamsPerUser: env.ATRIUM_MAX_STREAMS_PER_USER,
    /** Requests that this process works on at once. The others queue, and users take turns. */
    requestsAtOnce: env.ATRIUM_REQUESTS_AT_ONCE,
    requestsPerUserAtOnce: env.ATRIUM_REQUESTS_PER_USER_AT_ONCE,
  });
}
