import { createHmac, hash } from 'node:crypto';
import { type Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http';
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Config } from '../../config/index.ts';

/** After an answer that it does not take, the SDK sends everything for so long. */
const restMs = 30_000;
const signedHeaders = 'host;x-amz-content-sha256;x-amz-date';

/**
 * Sends objects that fit into one request, with nothing around it: for a small one the SDK's way of making a request
 * takes several times what the rest of its upload does. It knows the plain case only, a store at an address with keys
 * of its own: for everything else, an answer other than "done" above all, there is the SDK, which tries again and tells
 * what is wrong.
 */
export class DirectPut {
  private readonly endpoint: URL;
  private readonly folder: string;
  private readonly storage: { region: string; accessKeyId: string; secretAccessKey: string; silenceMs: number };
  private readonly agents: { httpAgent: HttpAgent; httpsAgent: HttpsAgent };
  private signing = { day: '', key: Buffer.alloc(0) };
  private restsUntilMs = 0;

  private constructor(
    { endpoint, bucket, ...storage }: Plain,
    agents: { httpAgent: HttpAgent; httpsAgent: HttpsAgent },
  ) {
    this.endpoint = new URL(endpoint);
    this.folder = `${this.endpoint.pathname.replace(/\/$/, '')}/${bucket}`;
    this.storage = storage;
    this.agents = agents;
  }

  /** Undefined where the SDK has to find out where the store is, or with which keys. */
  static for(
    { endpoint, accessKeyId, secretAccessKey, ...storage }: Config['storage'],
    agents: { httpAgent: HttpAgent; httpsAgent: HttpsAgent },
  ): DirectPut | undefined {
    if (endpoint === undefined || accessKeyId === undefined || secretAccessKey === undefined) return undefined;
    return new DirectPut({ ...storage, endpoint, accessKeyId, secretAccessKey }, agents);
  }

  /** Whether the object is stored now. If not, it may be, or may become so. Never rejects. */
  async put(key: string, bytes: Buffer): Promise<boolean> {
    if (performance.now() < this.restsUntilMs || !/^[\w-]+$/.test(key)) return false;
    const path = `${this.folder}/${key}`;
    const status = await this.send(path, bytes).catch(() => undefined);
    if (status !== 200) this.restsUntilMs = performance.now() + restMs;
    return status === 200;
  }

  private send(path: string, bytes: Buffer): Promise<number | undefined> {
    const isPlain = this.endpoint.protocol === 'http:';
    const options: RequestOptions = {
      host: this.endpoint.hostname.replace(/^\[|\]$/g, ''),
      port: this.endpoint.port,
      agent: isPlain ? this.agents.httpAgent : this.agents.httpsAgent,
      method: 'PUT',
      path,
      headers: { ...this.headersOf(path, hash('sha256', bytes)), 'content-length': bytes.length },
    };
    return new Promise((resolve, reject) => {
      const sending = isPlain ? httpRequest(options) : httpsRequest(options);
      // Half of the time, since the SDK comes after it.
      sending.setTimeout(this.storage.silenceMs / 2, () => sending.destroy(new Error('The object store is silent.')));
      sending.on('error', reject);
      sending.on('response', (response) => {
        response.on('error', reject).on('end', () => resolve(response.statusCode));
        response.resume();
      });
      sending.end(bytes);
    });
  }

  /** Signed by AWS's Signature Version 4, with a hash of the bytes, which the store compares. */
  private headersOf(path: string, bodyHash: string): Record<string, string> {
    const time = new Date().toISOString().replace(/[:-]|\.\d+/g, '');
    const { host } = this.endpoint;
    const scope = `${time.slice(0, 8)}/${this.storage.region}/s3/aws4_request`;
    const headers = `host:${host}\nx-amz-content-sha256:${bodyHash}\nx-amz-date:${time}\n`;
    const canonical = `PUT\n${path}\n\n${headers}\n${signedHeaders}\n${bodyHash}`;
    const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hash('sha256', canonical)}`;
    const signature = createHmac('sha256', this.signingKey(time.slice(0, 8)))
      .update(toSign)
      .digest('hex');
    const credential = `${this.storage.accessKeyId}/${scope}`;
    return {
      host,
      'x-amz-content-sha256': bodyHash,
      'x-amz-date': time,
      authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    };
  }

  /** It is good for a day. */
  private signingKey(day: string): Buffer {
    if (this.signing.day === day) return this.signing.key;
    let key: string | Buffer = `AWS4${this.storage.secretAccessKey}`;
    for (const part of [day, this.storage.region, 's3', 'aws4_request']) {
      key = createHmac('sha256', key).update(part).digest();
    }
    this.signing = { day, key: Buffer.from(key) };
    return this.signing.key;
  }
}

interface Plain {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  silenceMs: number;
}
