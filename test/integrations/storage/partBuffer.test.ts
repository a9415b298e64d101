import { randomBytes } from 'node:crypto';
import { PartBuffer } from '../../../integrations/storage/partBuffer.ts';

test('a PartBuffer takes as many bytes as a part has, and can be used again after clear', () => {
  const bytes = randomBytes(300_000);
  const buffer = new PartBuffer(200_000);
  for (let round = 0; round < 2; round++) {
    expect([buffer.isFull, buffer.content.length]).toEqual([false, 0]);
    for (let at = 0; at < 150_000; at += 50_000) expect(buffer.append(bytes.subarray(at, at + 50_000))).toBe(50_000);
    expect(buffer.append(bytes.subarray(150_000))).toBe(50_000);
    expect([buffer.isFull, buffer.append(bytes)]).toEqual([true, 0]);
    expect(buffer.content.equals(bytes.subarray(0, 200_000))).toBe(true);
    buffer.clear();
  }
});
