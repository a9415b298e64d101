import { closeSync, readdirSync, readFileSync } from 'node:fs';

const closesOnExec = 0o2000000;

/** Closes what was left open for us by chance, a descriptor of whoever started the host: what we start would have it. */
export function closeStrayDescriptors(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    try {
      const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
      // Node's own are marked so.
      if (fd > 2 && flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0) closeSync(fd);
    } catch {
      // It is closed.
    }
  }
}
