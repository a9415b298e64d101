import { hash } from 'node:crypto';
import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Config } from '../../config/index.ts';
import type { S3Clients } from './s3.ts';

/** After an answer that it does not take, the SDK sends everything for so long. */
const restMs = 30_000;

/**
 * Sends objects that fit into one request, with nothing around it: for a small one the SDK's way of making a request
 * takes several times what the rest of its upload does. It knows the plain case only, a store at an address with keys
 * of its own: for everything else, an answer other than "done" above all, there is the SDK, which tries again and tells
 * what is wrong.
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

  /** Undefined where the SDK has to find out where the store is, or with which keys. */
  static for(
    { endpoint, accessKeyId, secretAccessKey, ...storage }: Config['storage'],
    connected: Connected,
  ): DirectPut | undefined {
    if (endpoint === undefined || accessKeyId === undefined || secretAccessKey === undefined) return undefined;
    return new DirectPut({ ...storage, endpoint, accessKeyId, secretAccessKey }, connected);
  }

  /** Whether the object is stored now. If not, it may be, or may become so. Never rejects. */
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
    // The store compares the hash with what arrives.
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
      // Half of the time, since the SDK comes after it.
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

/** What the SDK has: its connections, and its way to hash. */
type Connected = Pick<S3Clients, 'agents' | 'client'>;

interface Plain {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  silenceMs: number;
}
