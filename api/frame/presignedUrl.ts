import type { RouteDeps } from './deps.ts';
import { time } from './times.ts';

/** A link to a file's bytes in the object store. Every holder of the link may use it until it expires. */
export async function presignedUrl(
  { storage }: Pick<RouteDeps, 'storage'>,
  file: { objectKey: string; name: string; contentType: string },
  options: { expiresIn: number; download: boolean },
): Promise<{ url: string; expiresAt: string }> {
  const { expiresIn, download } = options;
  const expiresAt = new Date(Date.now() + expiresIn * 1_000);
  const url = await storage.presignRead(file.objectKey, file, { expiresInSeconds: expiresIn, download });
  return { url, expiresAt: time(expiresAt) };
}
