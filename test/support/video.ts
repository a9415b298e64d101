import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const limits = { timeout: 60_000, maxBuffer: 64 * 1_048_576 };

/** The properties of a video that ffmpeg decoded completely. */
export interface Video {
  codec: string;
  width: number;
  height: number;
  durationSeconds: number;
  frames: number;
  /** Red, green and blue of a pixel at a time. */
  at(seconds: number, x: number, y: number): Promise<[number, number, number]>;
}

interface Probed {
  streams: { codec_name: string; width: number; height: number; nb_read_packets: string }[];
  format: { duration: string };
}

/** Decodes a video and passes it to `look`. Rejects if any part cannot be decoded. */
export async function withVideo<T>(bytes: Buffer, look: (video: Video) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-video-'));
  const file = join(folder, 'video.mp4');
  try {
    writeFileSync(file, bytes);
    const { stderr } = await run('ffmpeg', ['-v', 'error', '-xerror', '-i', file, '-f', 'null', '-'], limits);
    if (stderr !== '') throw new Error(stderr);
    const entries = 'stream=codec_name,width,height,nb_read_packets:format=duration';
    const asked = ['-v', 'error', '-count_packets', '-select_streams', 'v:0', '-show_entries', entries, '-of', 'json'];
    const { streams, format } = JSON.parse((await run('ffprobe', [...asked, file], limits)).stdout) as Probed;
    const [stream] = streams;
    if (stream === undefined) throw new Error('It has no pictures.');
    const { codec_name: codec, width, height, nb_read_packets: frames } = stream;
    return await look({
      codec,
      width,
      height,
      durationSeconds: Number(format.duration),
      frames: Number(frames),
      async at(seconds, x, y) {
        const wanted = ['-v', 'error', '-ss', String(seconds), '-i', file, '-frames:v', '1'];
        const raw = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'];
        const { stdout } = await run('ffmpeg', [...wanted, ...raw], { ...limits, encoding: 'buffer' });
        const from = (y * width + x) * 3;
        return [stdout.readUInt8(from), stdout.readUInt8(from + 1), stdout.readUInt8(from + 2)];
      },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
