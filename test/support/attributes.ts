import { execFileSync } from 'node:child_process';

// Extended attributes of files. Node has no calls for them, so Perl makes these.

const calls = process.arch === 'arm64' ? { set: 5, get: 8 } : { set: 188, get: 191 };

const perl = (code: string, args: string[]) => execFileSync('perl', ['-e', code, ...args]).toString();

/** Sets an attribute of a file to these bytes. Throws if the file system has none. */
export function setAttribute(path: string, name: string, value: Buffer): void {
  const code = `my ($f, $n, $v) = @ARGV; $v = pack 'H*', $v; syscall(${calls.set}, $f, $n, $v, length $v, 0) and die $!`;
  perl(code, [path, name, value.toString('hex')]);
}

/** The bytes of an attribute. Undefined if the file has not got it. */
export function attributeOf(path: string, name: string): Buffer | undefined {
  const code = `my ($f, $n) = @ARGV; my $v = "\\0" x 1000; my $l = syscall ${calls.get}, $f, $n, $v, 1000;
    print $l < 0 ? 'none' : unpack 'H*', substr $v, 0, $l`;
  const found = perl(code, [path, name]);
  return found === 'none' ? undefined : Buffer.from(found, 'hex');
}

type AclEntry = [tag: 'owner' | 'user' | 'group' | 'mask' | 'others', rights: number, id?: number];

/** The bytes of an access control list, as in `system.posix_acl_access`. */
export function aclOf(entries: AclEntry[]): Buffer {
  const tags = { owner: 1, user: 2, group: 4, mask: 16, others: 32 };
  const bytes = Buffer.alloc(4 + 8 * entries.length);
  bytes.writeUInt32LE(2, 0); // the version of the format
  for (const [index, [tag, rights, id = 0xffff_ffff]] of entries.entries()) {
    const at = 4 + 8 * index;
    bytes.writeUInt16LE(tags[tag], at);
    bytes.writeUInt16LE(rights, at + 2);
    bytes.writeUInt32LE(id, at + 4);
  }
  return bytes;
}
