import { DomainError } from '../../../base/errors.ts';
import { type GitFailure, gitError, noGitServer } from './failures.ts';

export interface FailedRun {
  code: number | null;
  signal: string | null;
  said: string;
  output: Buffer | string;
}

type Described = readonly [code: GitFailure, sentence: string];

const unexplained: Described = ['GIT_FAILED', 'Git has failed on our side.'];
const killed: Described = ['GIT_FAILED', 'Git was ended on our side.'];

/** A failed run of git, for our log. It is the cause of the error that people see. */
class FailedGit extends Error {
  meaning?: Described;
}

/**
 * Maps git's messages to failures; the first match counts. The sentences are our own, because git's messages contain
 * URLs, and a server can make git say anything.
 */
const meanings: [pattern: RegExp, meaning: Described][] = [
  [/File too large|file size limit|pack exceeds maximum/i, ['GIT_TOO_LARGE', 'The repository is larger than may be.']],
  [
    /Out of memory|malloc failed|unable to create thread|mmap failed/i,
    ['GIT_TOO_LARGE', 'Git needs more memory for it than it may use.'],
  ],
  [/No space left on device/i, ['GIT_DISK_FULL', 'There is no room left for the repository.']],
  [/response 407|HTTP code 407/, ['GIT_FAILED', 'The way out was closed in the meantime.']],
  [
    /(?:response|from proxy after CONNECT:?|HTTP code) 403\b.*|HTTP code 403 from proxy/,
    [
      'GIT_REMOTE_FORBIDDEN',
      'The remote cannot be reached from here: its address is internal, or the space’s lists refuse it.',
    ],
  ],
  [
    /helper .* told us to quit/,
    ['GIT_AUTHENTICATION_FAILED', 'The remote asks for a credential, and there is none for this address.'],
  ],
  [
    /Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Invalid username or|returned error: 401/,
    ['GIT_AUTHENTICATION_FAILED', 'The remote asks for a credential, or refuses the one that it got.'],
  ],
  [/returned error: 403/, ['GIT_AUTHENTICATION_FAILED', 'The remote forbids this to the credential that it got.']],
  [
    /returned error: (?:404|410)|repository .* not found|Repository not found/i,
    ['GIT_REMOTE_NOT_FOUND', 'The remote has no such repository, or not for this credential.'],
  ],
  [
    /unable to update url base from redirection|Maximum \(\d+\) redirects|returned error: 30\d/,
    ['GIT_REMOTE_REFUSED', 'The remote redirects to another address.'],
  ],
  [
    /transport .* not allowed|Protocol "?\w+"? (?:not supported|disabled)|Unsupported protocol/i,
    ['GIT_REMOTE_REFUSED', 'The remote leads to an address that is not https.'],
  ],
  [/couldn't find remote ref|Remote branch .* not found/, ['GIT_REF_UNKNOWN', 'The remote has no such branch.']],
  [
    /certificate|SSL|TLS|gnutls/i,
    ['GIT_REMOTE_FAILED', 'The remote does not prove who it is: its certificate is not accepted.'],
  ],
  [
    /Operation too slow|Operation timed out|Connection timed out|Timeout was reached/,
    ['GIT_REMOTE_TOO_SLOW', 'The remote sends nothing, or too slowly.'],
  ],
  [
    /not our ref|not allow request for unadvertised object/,
    ['GIT_REMOTE_REFUSED', 'The remote does not give out an object that belongs to the repository.'],
  ],
  [
    /fsck error|\b[a-z]+[A-Z]\w+: |is a symbolic link|did not receive expected object|disallowed/,
    ['GIT_OBJECTS_REFUSED', 'The repository holds objects that git refuses as malformed or dangerous.'],
  ],
  [
    /\((?:non-fast-forward|fetch first|stale info|needs force|already exists|remote ref updated since checkout)\)/,
    [
      'GIT_CONFLICT',
      'The remote has commits that are not here. Pull them, and push again; where a pull is refused because both sides have commits, merge the branch of `origin` at a terminal, and push.',
    ],
  ],
  [
    /mismatched algorithms|does not support this repository's hash algorithm/,
    ['GIT_REMOTE_REFUSED', 'The repository uses SHA-256 for its ids; only those of SHA-1 can be cloned here.'],
  ],
  [
    /not valid: |malformed response|not a git repository|is this a git repository|invalid server response|protocol error|bad line length|unknown capability|expected flush|unexpected flush/i,
    noGitServer,
  ],
  [
    /Could not resolve|Failed to connect|Couldn't connect|response 50\d|Connection (?:refused|reset)|returned error: (?:429|5\d\d)/,
    ['GIT_REMOTE_FAILED', 'The remote cannot be reached, or answers with an error.'],
  ],
  [
    /early EOF|unexpected disconnect|RPC failed|hung up|index-pack (?:failed|died)|fetch-pack: |transfer closed|remote end|Empty reply/i,
    ['GIT_REMOTE_FAILED', 'The connection to the remote ended in the middle.'],
  ],
];

/** Describes a failed run for people. `secrets` are removed from the cause, which goes to our log. */
export function describeFailure(run: FailedRun, secrets: Iterable<string> = []): DomainError {
  const cause = new FailedGit(
    withoutSecrets(`git ended with ${run.signal ?? run.code}: ${run.said.slice(-2_000)}`, secrets),
  );
  if (run.signal === 'SIGXFSZ' || run.code === 153) {
    return gitError('GIT_TOO_LARGE', 'The repository is larger than may be.', { cause });
  }
  const text = `${run.said}\n${run.output}`;
  const rejection = rejectionOf(withoutSecrets(text, secrets));
  if (rejection !== undefined) {
    return gitError('GIT_REMOTE_REFUSED', `The remote refuses this: ${rejection}.`, { cause });
  }
  const [, meaning = run.signal === 'SIGKILL' ? killed : unexplained] = meanings.find(([it]) => it.test(text)) ?? [];
  cause.meaning = meaning;
  const [code, sentence] = meaning;
  const reason = code === 'GIT_REMOTE_FAILED' ? reasonOf(withoutSecrets(run.said, secrets)) : '';
  return gitError(code, reason === '' ? sentence : `${sentence} Git says: ${reason}`, { cause });
}

/** Describes a refusal of the egress guard for people, without the address that a host name resolves to. */
export function describeRefusal(refusal: string): string {
  const isInternal = /address is internal/.test(refusal);
  const said = `The remote cannot be reached from here: ${isInternal ? 'its address is internal' : refusal}.`;
  return isInternal ? `${said} The operator can allow it with ATRIUM_EGRESS_ALLOW_INTERNAL.` : said;
}

/** Whether neither the remote nor the machine explains a failure. Then the repository may be damaged. */
export function isUnexplained(error: unknown): boolean {
  return wasKilled(error) || meaningOf(error) === unexplained;
}

/** Whether git was killed from outside, for example because the machine has no memory left. */
export function wasKilled(error: unknown): boolean {
  return meaningOf(error) === killed;
}

function meaningOf(error: unknown): Described | undefined {
  return error instanceof DomainError && error.cause instanceof FailedGit ? error.cause.meaning : undefined;
}

/** Git's last error, without addresses, paths of this machine and words of the remote. */
function reasonOf(said: string): string {
  const lines = said.split('\n').map((line) => /^(?:fatal|error): (.+)/.exec(line)?.[1] ?? '');
  const own = lines.filter((line) => line !== '' && !/^(?:remote error|protocol error|.*not valid): /.test(line));
  const reason = (own.at(-1) ?? '')
    .replace(/^unable to access '[^']*': /, '')
    .replace(/ ?CAfile: .*$/, '')
    .replace(/ to \S+ port \d+/, '');
  return cleanWords(reason, 200).replace(/[^.]$/, '$&.');
}

/** `! [remote rejected] main -> main (protected branch hook declined)` */
function rejectionOf(said: string): string | undefined {
  const reason = /\[remote rejected\].*?\((.+)\)/.exec(said)?.[1];
  return reason === undefined ? undefined : cleanWords(reason, 200);
}

/** Cleans the output of git or a remote for people: no URLs and no control characters. */
export function cleanWords(words: string, maxLength: number): string {
  return (
    words
      .replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, '')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a remote may send what moves a terminal's cursor
      .replace(/\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '')
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => line !== '')
      .join('\n')
      .slice(0, maxLength)
  );
}

const maxNamed = 5;

/** The first few names, and how many more there are. */
export function nameSome(names: readonly string[], maxLength: number): string {
  const named = names.map((name) => name.trim()).filter((name) => name !== '');
  const more = named.length > maxNamed ? ` and ${named.length - maxNamed} more` : '';
  return cleanWords(named.slice(0, maxNamed).join(', '), maxLength) + more;
}

export function withoutSecrets(text: string, secrets: Iterable<string>): string {
  let clean = text;
  for (const secret of secrets) if (secret !== '') clean = clean.replaceAll(secret, '[redacted]');
  return clean;
}
