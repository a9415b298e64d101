import { hash } from 'node:crypto';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Config } from '../../config/index.ts';
import type { S3Clients } from './s3.ts';

/** After a failed direct request, the SDK sends everything for this long. */
const restMs = 30_000;

/**
 * Sends objects that fit into one request, without the SDK: for a small object the SDK's own work takes several times
 * as long as the rest of the upload. This covers only the plain case, a store at a known address with keys. Everything
 * else is left to the SDK, above all any answer other than 200: the SDK retries and reports what is wrong.
 */
export class DirectPut {
  private readonly endpoint: URL;
  private readonly folder: string;
  private readonly silenceMs: number;
  private readonly signer: SignatureV4;
  private readonly agents: S3Clients['agents'];
  private restsUntilMs = 0;

  private constructor({ endpoint, bucket, region, silenceMs, ...credentials }: Plain, { agents, client }: Connected) {
    this.endpoint = new URL(endpoint);
    this.folder = `${this.endpoint.pathname.replace(/\/$/, '')}/${bucket}`;
    this.silenceMs = silenceMs;
    const { sha256 } = client.config;
    this.signer = new SignatureV4({ service: 's3', region, credentials, sha256, uriEscapePath: false });
    this.agents = agents;
  }

  /** Undefined if the SDK has to find out the address of the store or the keys. */
  static for(
    { endpoint, accessKeyId, secretAccessKey, ...storage }: Config['storage'],
    connected: Connected,
  ): DirectPut | undefined {
    if (endpoint === undefined || accessKeyId === undefined || secretAccessKey === undefined) return undefined;
    return new DirectPut({ ...storage, endpoint, accessKeyId, secretAccessKey }, connected);
  }

  /** True if the object is stored. False leaves it open: it may be stored, or may become so. Never rejects. */
  async put(key: string, bytes: Buffer): Promise<boolean> {
    if (performance.now() < this.restsUntilMs || !/^[\w-]+$/.test(key)) return false;
    const path = `${this.folder}/${key}`;
    const status = await this.send(path, bytes).catch(() => undefined);
    if (status !== 200) this.restsUntilMs = performance.now() + restMs;
    return status === 200;
  }

  private async send(path: string, bytes: Buffer): Promise<number | undefined> {
    const { protocol, host, hostname, port } = this.endpoint;
    const isPlain = protocol === 'http:';
    // The store compares this hash with the bytes that arrive.
    const headers = { host, 'x-amz-content-sha256': hash('sha256', bytes) };
    const signed = await this.signer.sign({ method: 'PUT', protocol, hostname, path, headers });
    const options: RequestOptions = {
      host: hostname.replace(/^\[|\]$/g, ''),
      port,
      agent: isPlain ? this.agents.httpAgent : this.agents.httpsAgent,
      method: 'PUT',
      path,
      headers: { ...signed.headers, 'content-length': bytes.length },
    };
    return new Promise((resolve, reject) => {
      const sending = isPlain ? httpRequest(options) : httpsRequest(options);
      // Half of the time, because the SDK tries next.
      sending.setTimeout(this.silenceMs / 2, () => sending.destroy(new Error('The object store is silent.')));
      sending.on('error', reject);
      sending.on('response', (response) => {
        response.on('error', reject).on('end', () => resolve(response.statusCode));
        response.resume();
      });
      sending.end(bytes);
    });
  }
}

/** The connections and the hash function of the SDK's client. */
type Connected = Pick<S3Clients, 'agents' | 'client'>;

interface Plain {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  silenceMs: number;
}
