import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What a sandbox has in /etc instead of the host’s. Names are asked of the agent, which listens on 127.0.0.1:53. */
const files: Record<string, string> = {
  passwd:
    'root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:user:/home/user:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n',
  group: 'root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost computer\n::1 localhost computer\n',
  hostname: 'computer\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'resolv.conf': 'nameserver 127.0.0.1\noptions timeout:5 attempts:1\n',
};

/** Writes them, readable for all; what was there is replaced whole. */
export async function writeEtc(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(files)) {
    const temporary = join(folder, `.${name}.${process.pid}`);
    await writeFile(temporary, text, { mode: 0o644 });
    await rename(temporary, join(folder, name));
  }
}
