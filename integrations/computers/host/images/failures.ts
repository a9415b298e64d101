import { isDiskFull } from '../disks/disks.ts';
import { HostError, type HostErrorCode } from '../hostErrors.ts';

/** What the programs complain about, and what that means. The first that fits counts. */
const meanings: readonly [RegExp, HostErrorCode][] = [
  [/quota exceeded|file too large|cannot allocate memory|out of memory|\(SIGKILL\)/i, 'IMAGE_TOO_LARGE'],
  [/digest did not match|does not match (provided|expected)|digest mismatch|diffid mismatch/i, 'IMAGE_DAMAGED'],
  [/unexpected EOF|gzip: invalid|archive\/tar|invalid tar header|invalid character|valid JSON/i, 'IMAGE_DAMAGED'],
  [/manifest unknown|name unknown|not known to registry|name invalid|status(code)?:? *404/i, 'IMAGE_NOT_FOUND'],
  [
    /unauthorized|authentication required|access denied|requested access|denied:|status(code)?:? *40[13]/i,
    'IMAGE_ACCESS_DENIED',
  ],
  [/no image found in|mediatype|unsupported|unrecognized|malicious tar entry|invalid argument/i, 'IMAGE_UNSUPPORTED'],
  [/deadline exceeded|i\/o timeout|timed out|did not end within/i, 'REGISTRY_TIMED_OUT'],
  [
    /dial tcp|connection re(fused|set)|no such host|x509|tls:|EOF|HTTP response to HTTPS|toomanyrequests|pinging/i,
    'REGISTRY_UNREACHABLE',
  ],
  [/status(code)?:? *(429|5\d\d)|received unexpected HTTP status/i, 'REGISTRY_UNREACHABLE'],
];

/** The failure of a program that works on an image. */
export function imageFailure(error: unknown): HostError {
  if (error instanceof HostError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = meanings.find(([complaint]) => complaint.test(message))?.[1];
  return new HostError(code ?? (isDiskFull(error) ? 'DISK_FULL' : 'IMAGE_FAILED'), message);
}
