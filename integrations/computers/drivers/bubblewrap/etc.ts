import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { uid as usualUid } from './view.ts';

/** What a sandbox has in /etc instead of the host’s. Names are asked of the agent, which listens on 127.0.0.1:53. */
const filesFor = (uid: number): Record<string, string> => ({
  passwd: `root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:${uid}:${uid}:user:/home/user:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
  group: `root:x:0:\ntty:x:5:\nuser:x:${uid}:\nnogroup:x:65534:\n`,
  hosts: '127.0.0.1 localhost computer\n::1 localhost computer\n',
  hostname: 'computer\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'resolv.conf': 'nameserver 127.0.0.1\noptions timeout:5 attempts:1\n',
});

/** Writes them, readable for all, with the user that a sandbox knows; what was there is replaced whole. */
export async function writeEtc(folder: string, uid = usualUid): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(filesFor(uid))) {
    const temporary = join(folder, `.${name}.${process.pid}`);
    await writeFile(temporary, text, { mode: 0o644 });
    await rename(temporary, join(folder, name));
  }
}
