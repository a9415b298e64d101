import { isWellFormedApiKey, newApiKey } from '../../../models/identity/apiKeyFormat.ts';

const keys = Array.from({ length: 200 }, newApiKey);

test('A key is atr_, 30 random characters and a checksum of 6', () => {
  for (const key of keys) expect(key).toMatch(/^atr_[0-9A-Za-z]{36}$/);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.every(isWellFormedApiKey)).toBe(true);
});

test('A key with any change is refused', () => {
  for (const key of keys) {
    const i = 4 + Math.floor(Math.random() * 36);
    const other = key[i] === 'a' ? 'b' : 'a';
    expect(isWellFormedApiKey(key.slice(0, i) + other + key.slice(i + 1))).toBe(false);
    expect(isWellFormedApiKey(key.toLowerCase())).toBe(false);
    expect(isWellFormedApiKey(key.slice(0, -1))).toBe(false);
    expect(isWellFormedApiKey(`${key}a`)).toBe(false);
    expect(isWellFormedApiKey(`${key}\n`)).toBe(false);
  }
});
