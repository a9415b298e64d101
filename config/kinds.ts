import { z } from 'zod';

export const bool = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1');
export const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
export const integer = (min: number, max: number) => {
  const said = `a whole number from ${min} to ${max}`;
  return z.coerce.number(said).int(said).min(min, said).max(max, said);
};
const amounts = 'a number from 0 to 1000000000';
export const amount = z.coerce.number(amounts).min(0, amounts).max(1_000_000_000, amounts);
